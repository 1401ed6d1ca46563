/**
 * Puts errors into streams: each provider error at each place, after complete content, in the event of the finish, and in the same
 * write as the finish.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import type { FaultScript } from "../../../src/testing/index.ts";
import { samples } from "../../samples/index.ts";
import {
  asked,
  type Cell,
  type Content,
  callsOf,
  type Expected,
  endsClean,
  event,
  fewTools,
  framed,
  hasLateCalls,
  type Mode,
  modes,
  none,
  recovered,
  sseProtocols,
  stopped,
  type ToolState,
  whole,
} from "../Cell.ts";
import { talk, withTools } from "./Healthy.ts";

const errors = [
  "rate_limited",
  "overloaded",
  "server_error",
  "context_overflow",
  "invalid_request",
] as const satisfies ReadonlyArray<FaultScript.ProviderErrorName>;
type ErrorName = (typeof errors)[number];

/** Content before the error. */
const places = {
  "as the first event": () => [],
  "after reasoning": () => [{ reasoning: 2 }],
  "after text": () => [{ text: 2 }],
  "after complete content": (tools: ToolState) => [...talk, ...callsOf(tools)],
  "after calls alone": (tools: ToolState) => callsOf(tools),
} as const satisfies Record<string, (tools: ToolState) => Content>;
type Place = keyof typeof places;

export const streamErrors = (): ReadonlyArray<Cell> =>
  sseProtocols.flatMap((protocol) => modes.flatMap((mode) => [...named(protocol, mode), ...finishes(protocol, mode)]));

const named = (protocol: ProtocolId, mode: Mode): ReadonlyArray<Cell> =>
  errors.flatMap((error) =>
    // Object.keys forgets that the keys are places.
    (Object.keys(places) as ReadonlyArray<Place>).flatMap((place) =>
      fewTools
        .filter((tools) => place !== "after calls alone" || tools.runtime !== undefined)
        .map((tools) => {
          const content: Content = [...places[place](tools), { error }];
          return {
            name: `${protocol}/error ${error} ${place}/${mode}/${tools.name}`,
            group: `error event ${place}: ${error}`,
            protocol,
            mode,
            tools,
            // The delay between events lets the caller see the earlier content before the error comes.
            answers: () => [{ content, delay_ms: 25 }, withTools(tools)],
            expect: expectNamed({ error, place, mode, tools, protocol }),
          };
        }),
    ),
  );

interface Named {
  readonly error: ErrorName;
  readonly place: Place;
  readonly mode: Mode;
  readonly tools: ToolState;
  readonly protocol: ProtocolId;
}

/** The expected outcome, by hand: an error that came in order means that all earlier content was seen. */
const expectNamed = ({ error, mode, place, protocol, tools }: Named): Expected => {
  const held = mode === "on_complete";
  const sees =
    held || place === "as the first event" || place === "after calls alone"
      ? "nothing"
      : place === "after reasoning"
        ? "thoughts"
        : "text";
  const keeps = sees === "nothing" ? [] : [1];
  if (error === "context_overflow" || error === "invalid_request") return stopped("not_retryable", keeps);
  // The provider's statement that it did nothing only counts in a first event.
  const free = place === "as the first event" && error !== "server_error";
  if (free) return recovered("not_processed");
  const calls =
    mode === "live" &&
    tools.runtime !== undefined &&
    (place === "after calls alone" || place === "after complete content");
  if (calls && tools.runtime?.guarded === false)
    return asked(hasLateCalls(protocol) ? "tool_input_shown" : "tool_call_handed_over", keeps);
  if (sees === "text" || (sees === "thoughts" && mode === "parts")) return asked("text_shown", keeps);
  if (calls) return recovered("tool_calls_fenced");
  return recovered(sees === "thoughts" ? "only_reasoning_shown" : "nothing_shown");
};

/** OpenRouter's finish for a provider that failed. */
const errorFinish = event({
  id: "gen-x",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta: { content: "" }, finish_reason: "error", native_finish_reason: "error" }],
  error: { code: 502, message: "Provider disconnected" },
});

/** The protocol's own finish. */
const finishOf = (protocol: ProtocolId): Content[number] =>
  framed(protocol, samples[protocol].events([], { lacksLast: true }).at(-1) ?? "");

/** The answer is whole, and the error after its marker is recorded. */
const late: Expected = { ...whole, rules: ["already_complete"] };

const finishes = (protocol: ProtocolId, mode: Mode): ReadonlyArray<Cell> => {
  const said: Content = [{ text: 3 }];
  const broken = mode === "on_complete" ? recovered("nothing_shown") : asked("text_shown", [1]);
  const cell = { protocol, mode, tools: none };
  const cells: Array<Cell> = [
    {
      ...cell,
      name: `${protocol}/error in the event of the finish/${mode}`,
      group: "error in the event of the finish",
      answers: () => [
        { content: [...said, framed(protocol, samples[protocol].failedFinish)], finish: "none", delay_ms: 25 },
        {},
      ],
      expect: broken,
    },
    {
      ...cell,
      name: `${protocol}/error after the finish, in one write/${mode}`,
      group: "error after the finish, in one write",
      answers: () => [{ content: [...said, finishOf(protocol), { error: "server_error" }], one_write: true }, {}],
      // Gemini's marker is a clean end, so the error revokes it. In one write nothing was seen yet.
      expect: endsClean(protocol) ? recovered("nothing_shown") : late,
      rawMarker: true,
    },
    {
      ...cell,
      name: `${protocol}/error after the finish, later/${mode}`,
      group: "error after the finish, later",
      answers: () => [{ content: [...said, finishOf(protocol), { error: "server_error" }], delay_ms: 25 }, {}],
      expect: endsClean(protocol)
        ? mode === "on_complete"
          ? recovered("nothing_shown")
          : asked("text_shown", [1])
        : late,
      rawMarker: true,
    },
  ];
  if (protocol !== "openai-chat") return cells;
  return [
    ...cells,
    {
      ...cell,
      name: `${protocol}/finish_reason error, then [DONE]/${mode}`,
      group: "finish_reason error, then [DONE]",
      answers: () => [
        {
          content: [...said, errorFinish, { bytes: Buffer.from("data: [DONE]\n\n").toString("base64") }],
          finish: "none",
          delay_ms: 25,
        },
        {},
      ],
      expect: broken,
    },
  ];
};
