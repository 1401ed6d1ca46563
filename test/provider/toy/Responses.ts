/**
 * Writes responses in the toy protocol, for the fault provider.
 */
import { bytesFrame, commentFrame, frame } from "../../../src/testing/answers/Frames.ts";
import type { Item } from "../../../src/testing/answers/Items.ts";
import type { Answers } from "../../../src/testing/index.ts";

export const toyAnswers: Answers.AnswerProtocol = {
  id: "toy",
  shortName: "toy",
  path: "/v1/talk",
  basePath: "/v1",
  isServed: (path) => path.endsWith("/talk"),
  write: ({ finish, items }) => {
    let calls = 0;
    const said = items.flatMap((item) => eventsOf(item, item.type === "call" ? calls++ : 0));
    const last = finish === "none" ? [] : [frame("terminal", { t: "end", why: finish })];
    return [frame("lifecycle", { t: "begin" }), ...said, ...last];
  },
  errorBody: (status) => ({ t: "error", message: `status ${status}` }),
  endsWith: "event",
  mayEnd: ({ t }) => t === "end",
};

const eventsOf = (item: Item, n: number): ReadonlyArray<Answers.AnswerEvent> => {
  switch (item.type) {
    case "text":
    case "refusal":
      return item.deltas.map((text) => frame("text", { t: "say", text }, { serials: [text] }));
    case "reasoning":
      return item.deltas.map((text) => frame("reasoning", { t: "think", text }, { serials: [text] }));
    case "call":
      return [
        frame("call", { t: "call", n, tool: item.call.name }),
        ...item.pieces.map((piece) => frame("arguments", { t: "args", n, piece })),
        frame("call", { t: "ready", n }, item.cut ? {} : { call: item.call }),
      ];
    case "error":
      return [frame("error", { t: "error", message: item.error })];
    case "ping":
      return Array.from({ length: item.count }, () => commentFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
  }
};
