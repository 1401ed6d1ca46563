/** Reads HTTP/1.1 messages from raw bytes, without Node's parser, so that a broken body is seen as it came. */

/** A message as it was read so far. */
export interface Message {
  /** The request line or the status line. */
  readonly line: string;
  readonly headers: ReadonlyMap<string, string>;
}

/** Reads one message after another from a connection. */
export class HttpReader {
  #bytes: Buffer = Buffer.alloc(0);
  #state: "head" | "length" | "size" | "chunk" | "trailer" | "until_end" = "head";
  #left = 0;
  readonly #isRequest: boolean;
  readonly #on: {
    readonly head: (message: Message) => void;
    readonly data: (bytes: Buffer) => void;
    readonly whole: () => void;
  };

  constructor(
    isRequest: boolean,
    on: { head: (message: Message) => void; data: (bytes: Buffer) => void; whole: () => void },
  ) {
    this.#isRequest = isRequest;
    this.#on = on;
  }

  push(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
    while (this.#step()) {
      // Each step consumes bytes.
    }
  }

  /** The connection ended. @returns true if a message that lasts until then is whole */
  end(): boolean {
    if (this.#state !== "until_end") return false;
    this.#on.whole();
    return true;
  }

  #step(): boolean {
    switch (this.#state) {
      case "head":
        return this.#readHead();
      case "size":
        return this.#readLine((line) => {
          this.#left = Number.parseInt(line, 16);
          this.#state = this.#left === 0 ? "trailer" : "chunk";
        });
      case "trailer":
        return this.#readLine((line) => {
          if (line === "") this.#finish();
        });
      case "until_end":
        return this.#readData(this.#bytes.length);
      case "length":
      case "chunk":
        return this.#readCounted();
    }
  }

  #readHead(): boolean {
    const end = this.#bytes.indexOf("\r\n\r\n");
    if (end < 0) return false;
    const [line = "", ...fields] = this.#bytes.subarray(0, end).toString("latin1").split("\r\n");
    this.#bytes = this.#bytes.subarray(end + 4);
    if (/^HTTP\/1\.1 1\d\d/.test(line)) return true;
    const headers = new Map(
      fields.map((field) => {
        const at = field.indexOf(":");
        return [field.slice(0, at).toLowerCase(), field.slice(at + 1).trim()] as const;
      }),
    );
    const length = headers.get("content-length");
    this.#left = Number(length ?? 0);
    const isChunked = headers.get("transfer-encoding") === "chunked";
    this.#state = isChunked ? "size" : length === undefined && !this.#isRequest ? "until_end" : "length";
    this.#on.head({ line, headers });
    if (this.#state === "length" && this.#left === 0) this.#finish();
    return true;
  }

  #readCounted(): boolean {
    if (this.#left > 0) return this.#readData(Math.min(this.#left, this.#bytes.length));
    if (this.#state === "length") {
      this.#finish();
      return true;
    }
    return this.#readLine(() => {
      this.#state = "size";
    });
  }

  #readData(count: number): boolean {
    if (count === 0) return false;
    const data = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    if (this.#state !== "until_end") this.#left -= count;
    this.#on.data(data);
    if (this.#state === "length" && this.#left === 0) this.#finish();
    return true;
  }

  #readLine(take: (line: string) => void): boolean {
    const end = this.#bytes.indexOf("\r\n");
    if (end < 0) return false;
    const line = this.#bytes.subarray(0, end).toString("latin1");
    this.#bytes = this.#bytes.subarray(end + 2);
    take(line);
    return true;
  }

  #finish(): void {
    this.#state = "head";
    this.#on.whole();
  }
}
