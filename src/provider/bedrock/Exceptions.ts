/** Reads the exceptions that end a stream of Amazon Bedrock, in both of its protocols. */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import { isException } from "../stream/EventStream.ts";
import type { SseEvent } from "../stream/Protocol.ts";

/** Returns the failure of an exception event; undefined for any other event. */
export const exceptionOf = ({ data, event }: SseEvent): Failure | undefined => {
  if (!isException(event)) return undefined;
  const said = Json.record(Json.parse(data)?.json) ?? {};
  return classifyEvent(event === "error" ? { error: said } : { [event]: said }) ?? unnamed;
};

const unnamed: Failure = { kind: "server_error", in_band: true };
