/** Recognises a response that streams although its request was not a run, and reports its path once. */
import { fieldOf, type RelayHead, readAddress } from "../../adapters/relay/RelayTransport.ts";

/** Content types of streams, whatever their length says. */
const streamType =
  /^\s*(?:text\/event-stream|application\/(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines)|application\/stream\+json|application\/json-seq|application\/vnd\.amazon\.eventstream|application\/grpc\b|application\/connect\+)/i;

/** Content types that stream if no length is given: text as it is written, and sound as it is spoken. */
const openEnded = /^\s*(?:text\/plain|audio\/|video\/|application\/octet-stream|$)/i;

const json = /^\s*application\/(?:[\w.-]+\+)?json\b/i;

/**
 * True if a response streams, judged by its head alone: by its type, or by a missing length. JSON needs an address that asks for a stream.
 */
export const isStream = ({ headers, status }: RelayHead, url: string): boolean => {
  if (status < 200 || status > 299 || status === 204) return false;
  const type = fieldOf(headers, "content-type") ?? "";
  if (streamType.test(type)) return true;
  if (fieldOf(headers, "content-length") !== undefined) return false;
  return openEnded.test(type) || (json.test(type) && /stream/i.test(lastSegment(url)));
};

const lastSegment = (url: string): string => /[^/]*\/?$/.exec(readAddress(url)?.pathname ?? "")?.[0] ?? "";

/** Maximum paths that are reported, because a client may invent any number of them. */
export const reportedPathsMax = 256;

/** Remembers the paths that were reported. */
export class ReportedPaths {
  readonly #paths = new Set<string>();

  /**
   * Returns the path in its masked form, once; undefined if it was already reported, or if too many were.
   *
   * @param target as the client sent it
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

/** Returns a path without its query and with `{id}` in place of every segment that is not a plain word or version. */
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
