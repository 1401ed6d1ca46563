/** Recognises a response that is a stream although its request was not a run, and reports each such path once. */
import { fieldOf, type RelayHead, readAddress } from "../../adapters/relay/RelayTransport.ts";

/** Content types of streams, even with a content length. */
const streamType =
  /^\s*(?:text\/event-stream|application\/(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines)|application\/stream\+json|application\/json-seq|application\/vnd\.amazon\.eventstream|application\/grpc\b|application\/connect\+)/i;

/** Content types that count as streams if there is no content length: text, audio and video may be sent while they are generated. */
const openEnded = /^\s*(?:text\/plain|audio\/|video\/|application\/octet-stream|$)/i;

const json = /^\s*application\/(?:[\w.-]+\+)?json\b/i;

/**
 * True if a response is a stream, judged by its head: by its type, or because it has no content length. JSON without a length counts only
 * if the address contains `stream`.
 */
export const isStream = ({ headers, status }: RelayHead, url: string): boolean => {
  if (status < 200 || status > 299 || status === 204) return false;
  const type = fieldOf(headers, "content-type") ?? "";
  if (streamType.test(type)) return true;
  if (fieldOf(headers, "content-length") !== undefined) return false;
  return openEnded.test(type) || (json.test(type) && /stream/i.test(lastSegment(url)));
};

const lastSegment = (url: string): string => /[^/]*\/?$/.exec(readAddress(url)?.pathname ?? "")?.[0] ?? "";

/** Maximum number of reported paths. A client could otherwise cause an unlimited number of reports. */
export const reportedPathsMax = 256;

/** Remembers the paths that were reported. */
export class ReportedPaths {
  readonly #paths = new Set<string>();

  /**
   * Returns the masked path the first time it is seen. Returns undefined if the path was reported before, or if `reportedPathsMax` paths
   * were.
   *
   * @param target path and query, as the client sent them
   */
  takeNew(target: string): string | undefined {
    const path = maskPath(target);
    if (this.#paths.has(path) || this.#paths.size >= reportedPathsMax) return undefined;
    this.#paths.add(path);
    return path;
  }
}

/** Maximum length of a masked path, in characters. */
const maskedCharactersMax = 128;

/** Removes the query of a path, and replaces each segment that is not a plain word or a version with `{id}`. */
export const maskPath = (target: string): string => {
  const [path = ""] = target.slice(0, 2_048).split(/[?#]/, 1);
  const masked = path.split("/").map(maskSegment).join("/");
  return masked.length <= maskedCharactersMax ? masked : `${masked.slice(0, maskedCharactersMax - 1)}…`;
};

const maskSegment = (segment: string): string => {
  const [, name = "", call = ""] = /^(.*?)(:[A-Za-z]{1,32})?$/.exec(segment) ?? [];
  return (name === "" || plainWord.test(name) ? name : "{id}") + call;
};

const plainWord = /^(?:v\d{1,2}(?:[a-z]{1,10}\d{0,2})?|[a-z]{1,16}(?:[_-][a-z]{1,16}){0,4})$/;
