/** Reads the parts of HTTP/1.1 requests that a fault server needs: the head, the body by length or in chunks, and a hash of the body. */
import { createHash } from "node:crypto";

/** Maximum size of a request head, in bytes. */
export const requestHeadBytesMax = 64 * 1024;

/** Maximum size of a request body, in bytes. */
export const requestBodyBytesMax = 64 * 1024 * 1024;

/** The head of an HTTP/1.1 request. */
export interface RequestHead {
  readonly method: string;
  /** The request target as sent, with its query. */
  readonly target: string;
  /** Values by lower-case header name. */
  readonly headers: ReadonlyMap<string, string>;
}

/** Reads one request, piece by piece. */
export interface RequestReader {
  /** Adds bytes. Returns the bytes after the end of the request, which belong to the next request. */
  readonly push: (bytes: Uint8Array) => Uint8Array;
  readonly head: () => RequestHead | undefined;
  readonly complete: () => boolean;
  /** The reason why the request cannot be read. A broken request stays broken. */
  readonly findProblem: () => string | undefined;
  /** Bytes received for this request, including its head. */
  readonly receivedBytes: () => number;
  readonly bodyBytes: () => number;
  /** SHA-256 of the body so far, in hex. */
  readonly bodyHash: () => string;
  /** The body so far as text; empty if bodies are not kept. */
  readonly body: () => string;
}

const nothing = new Uint8Array(0);

/**
 * Creates a reader for one request.
 *
 * @param keepsBody true if the body itself is needed; otherwise only its hash is kept
 */
export const make = (keepsBody = false): RequestReader => new Reader(keepsBody);

/** Values of `#left` that mark the next line of a chunked body as a chunk size or a trailer. */
const sizeLine = -1;
const trailerLine = -2;

class Reader implements RequestReader {
  #pending: Buffer = Buffer.alloc(0);
  #head: RequestHead | undefined = undefined;
  #problem: string | undefined = undefined;
  #complete = false;
  #received = 0;
  #bodyBytes = 0;
  #chunked = false;
  /** Number of bytes of the body or chunk that are still to come, or the kind of the next line. */
  #left = 0;
  readonly #hash = createHash("sha256");
  readonly #kept: Array<Buffer> = [];
  readonly #keepsBody: boolean;

  constructor(keepsBody: boolean) {
    this.#keepsBody = keepsBody;
  }

  readonly head = () => this.#head;
  readonly complete = () => this.#complete;
  readonly findProblem = () => this.#problem;
  readonly receivedBytes = () => this.#received;
  readonly bodyBytes = () => this.#bodyBytes;
  readonly bodyHash = () => this.#hash.copy().digest("hex");
  readonly body = () => Buffer.concat(this.#kept).toString();

  push(bytes: Uint8Array): Uint8Array {
    this.#received += bytes.byteLength;
    this.#pending = Buffer.concat([this.#pending, bytes]);
    if (this.#head === undefined) this.#readHead();
    if (this.#head !== undefined) this.#readBody();
    if (!this.#complete) return nothing;
    const rest = this.#pending;
    this.#pending = Buffer.alloc(0);
    this.#received -= rest.byteLength;
    return rest;
  }

  #readHead(): void {
    const end = this.#pending.indexOf("\r\n\r\n");
    if (end === -1) {
      if (this.#pending.byteLength > requestHeadBytesMax) this.#problem = "head too large";
      // No method starts with this character, so a TLS client has connected to a plain port. The request head would never end.
      if (!/^[A-Z]/.test(this.#pending.toString("latin1", 0, 1))) this.#problem = "not HTTP/1.1";
      return;
    }
    const head = parseHead(this.#pending.toString("latin1", 0, end));
    this.#pending = this.#pending.subarray(end + 4);
    if (head === undefined) {
      this.#problem = "not HTTP/1.1";
      return;
    }
    this.#head = head;
    this.#chunked = /chunked/i.test(head.headers.get("transfer-encoding") ?? "");
    const length = Number(head.headers.get("content-length") ?? 0);
    this.#left = this.#chunked ? sizeLine : length;
    if (!this.#chunked && !(Number.isSafeInteger(length) && length >= 0)) this.#problem = "bad content-length";
  }

  #readBody(): void {
    while (this.#problem === undefined && !this.#complete) {
      if (this.#left > 0) {
        const part = this.#pending.subarray(0, this.#left);
        if (part.byteLength === 0) return;
        this.#pending = this.#pending.subarray(part.byteLength);
        this.#left -= part.byteLength;
        this.#body(part);
        if (this.#left === 0 && this.#chunked) this.#left = sizeLine;
      } else if (!this.#chunked) this.#complete = true;
      else if (!this.#readLine()) return;
    }
  }

  #body(part: Uint8Array): void {
    this.#bodyBytes += part.byteLength;
    if (this.#bodyBytes > requestBodyBytesMax) this.#problem = "body too large";
    this.#hash.update(part);
    if (this.#keepsBody && this.#problem === undefined) this.#kept.push(Buffer.from(part));
  }

  /** Reads a chunk size or a trailer. Returns false if more bytes are needed or the request is complete. */
  #readLine(): boolean {
    const end = this.#pending.indexOf("\r\n");
    if (end === -1) {
      if (this.#pending.byteLength > requestHeadBytesMax) this.#problem = "chunk line too long";
      return false;
    }
    const line = this.#pending.toString("latin1", 0, end);
    this.#pending = this.#pending.subarray(end + 2);
    if (this.#left === trailerLine) {
      this.#complete = line === "";
      return !this.#complete;
    }
    // An empty line is the line end after the bytes of a chunk.
    if (line === "") return true;
    const size = /^[0-9a-f]{1,8}\s*(?:;.*)?$/i.test(line) ? Number.parseInt(line, 16) : undefined;
    if (size === undefined) this.#problem = "bad chunk";
    this.#left = size === undefined || size === 0 ? trailerLine : size;
    return this.#problem === undefined;
  }
}

const parseHead = (text: string): RequestHead | undefined => {
  const [first = "", ...lines] = text.split("\r\n");
  const match = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/.exec(first);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return { method: match[1], target: match[2], headers };
};
