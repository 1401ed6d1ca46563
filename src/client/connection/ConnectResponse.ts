/**
 * Reads a proxy's response to CONNECT: its status, or the reason why it is invalid.
 */

/** Maximum head of a proxy's response, in bytes, including interim responses. Node accepts as much of any head. */
export const connectHeadBytesMax = 16 * 1024;

/**
 * The response so far. `bad_response`: the bytes are not an HTTP/1 response, or data follows its head, although the tunnel
 * begins there and no server speaks first. `head_overflow`: the head is too long.
 */
export type ConnectReading =
  | { readonly kind: "more" }
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "bad_response" | "head_overflow" };

/** Reads one response as it arrives. */
export class ConnectResponse {
  #text = "";
  #interim = 0;

  /** Adds the next bytes. Any result other than `more` is final. */
  push(bytes: Uint8Array): ConnectReading {
    this.#text += Buffer.from(bytes).toString("latin1");
    for (;;) {
      if (this.#interim + this.#text.length > connectHeadBytesMax) return { kind: "head_overflow" };
      // Report garbage at once instead of waiting for the connect clock.
      const begun = this.#text.slice(0, protocol.length);
      if (begun !== protocol.slice(0, begun.length)) return { kind: "bad_response" };
      const end = /\r?\n\r?\n/.exec(this.#text);
      if (end === null) return { kind: "more" };
      const status = Number(/^HTTP\/1\.[01] ([1-5]\d\d)(?:[ \r\n])/.exec(this.#text)?.[1]);
      if (Number.isNaN(status)) return { kind: "bad_response" };
      const behind = end.index + end[0].length;
      if (status >= 200) return this.#final(status, behind);
      // 1xx: the final response is still to come (RFC 9110, 15.2).
      this.#interim += behind;
      this.#text = this.#text.slice(behind);
    }
  }

  /** A refusal may have a body, which is not read. A success has none (RFC 9110, 9.3.6). */
  #final(status: number, behind: number): ConnectReading {
    const opened = status < 300;
    return opened && this.#text.length > behind ? { kind: "bad_response" } : { kind: "status", status };
  }
}

const protocol = "HTTP/1.";
