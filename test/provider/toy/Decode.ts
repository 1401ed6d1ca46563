/**
 * Decodes a toy stream: `say`, `think`, `call`, `args`, `ready`, `error`, and `end`, which is the terminal marker.
 */
import type { Failure } from "../../../src/domain/Failure.ts";
import * as Json from "../../../src/domain/Json.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import { type Content, lengthOf, nothing } from "../../../src/provider/stream/Content.ts";
import { unparsedPart } from "../../../src/provider/stream/Payload.ts";
import type { End, Part, Protocol, SseEvent } from "../../../src/provider/stream/Protocol.ts";
import * as Calls from "./Calls.ts";
import { said, thought } from "./Content.ts";

export const id = "toy";

export interface State {
  readonly calls: Calls.Calls;
  readonly end: End | undefined;
}

type Step = readonly [State, Observation.Observation, ReadonlyArray<Content>?];

const step = (state: State, event: SseEvent): readonly [State, Part<typeof id>] => {
  const parsed = Json.parse(event.data);
  if (parsed === undefined) {
    const part = unparsedPart(id, event);
    const { failure } = part.observation;
    return [failure === undefined ? state : failed(state, failure), part];
  }
  const [next, observation, content = nothing] = fold(state, Json.record(parsed.json) ?? {});
  return [next, { protocol: id, event, json: parsed.json, content, observation }];
};

const failed = (state: State, failure: Failure): State => ({
  ...state,
  end: state.end ?? { complete: false, failure },
});

const output: Observation.Observation = { ...Observation.none, progress: "output" };

const fold = (state: State, frame: Json.JsonRecord): Step => {
  if (state.end !== undefined) return [state, Observation.none];
  const ordinal = Json.natural(frame.n) ?? 0;
  switch (frame.t) {
    case "say": {
      const content = said(Json.string(frame.text));
      return [state, Observation.text(lengthOf(content)), content];
    }
    case "think": {
      const content = thought(Json.string(frame.text));
      return [state, Observation.reasoning(lengthOf(content)), content];
    }
    case "call": {
      const [calls, signal] = Calls.begin(state.calls, Json.string(frame.tool));
      return [{ ...state, calls }, Observation.calls([signal])];
    }
    case "args":
      return [{ ...state, calls: Calls.append(state.calls, ordinal, Json.string(frame.piece)) }, output];
    case "ready": {
      const signal = Calls.ready(state.calls, ordinal);
      return [state, signal === undefined ? output : Observation.calls([signal])];
    }
    case "end":
      return [{ ...state, end: { complete: true } }, Observation.terminal(Json.string(frame.why))];
    case "error": {
      const failure: Failure = { kind: "server_error", in_band: true };
      return [failed(state, failure), Observation.failed(failure)];
    }
    default:
      return [state, Observation.none];
  }
};

/** The toy protocol as a fold. */
export const protocol: Protocol<State, typeof id> = {
  id,
  initial: () => ({ calls: [], end: undefined }),
  step,
  halt: ({ end }) => end ?? { complete: false, failure: { kind: "truncated" } },
  observe: ({ observation }) => observation,
};
