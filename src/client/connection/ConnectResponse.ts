/**
 * Reads a proxy's response to CONNECT from the bytes that come: its status, or why it is none.
 */

/** Most bytes of the head of a proxy's response, interim responses included: what Node takes of any head. */
export const connectHeadBytesMax = 16 * 1024;

/**
 * What a response says so far. `bad_response`: the bytes are no HTTP/1 response, or something came behind its head, where the
 * tunnel begins and no server speaks first. `head_overflow`: the head is too long.
 */
export type ConnectReading =
  | { readonly kind: "more" }
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "bad_response" | "head_overflow" };

/** One response, read as it comes. */
export class ConnectResponse {
  #text = "";
  #interim = 0;

  /** Takes the next bytes. Once it says anything but `more`, it is over. */
  push(bytes: Uint8Array): ConnectReading {
    this.#text += Buffer.from(bytes).toString("latin1");
    for (;;) {
      if (this.#interim + this.#text.length > connectHeadBytesMax) return { kind: "head_overflow" };
      // Garbage is told at once, and not when the connect clock runs out.
      const begun = this.#text.slice(0, protocol.length);
      if (begun !== protocol.slice(0, begun.length)) return { kind: "bad_response" };
      const end = /\r?\n\r?\n/.exec(this.#text);
      if (end === null) return { kind: "more" };
      const status = Number(/^HTTP\/1\.[01] ([1-5]\d\d)(?:[ \r\n])/.exec(this.#text)?.[1]);
      if (Number.isNaN(status)) return { kind: "bad_response" };
      const behind = end.index + end[0].length;
      if (status >= 200) return this.#final(status, behind);
      // 1xx: the response itself is still to come (RFC 9110, 15.2).
      this.#interim += behind;
      this.#text = this.#text.slice(behind);
    }
  }

  /** A refusal may have a body, which is not read; a success has none (RFC 9110, 9.3.6). */
  #final(status: number, behind: number): ConnectReading {
    const opened = status < 300;
    return opened && this.#text.length > behind ? { kind: "bad_response" } : { kind: "status", status };
  }
}

const protocol = "HTTP/1.";
