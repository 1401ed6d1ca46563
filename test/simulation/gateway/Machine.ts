/**
 * Replaces the clocks, timers, random sources and sockets of this process, so that a gateway runs in virtual time and a seed decides
 * everything. Node's HTTP server and undici run as they are, over virtual sockets.
 */
import crypto, { createHash, createHmac } from "node:crypto";
import { createRequire, syncBuiltinESMExports } from "node:module";
import net from "node:net";
import { DatabaseSync, StatementSync } from "node:sqlite";
import timersPromises from "node:timers/promises";
import { seeded } from "../../Seeded.ts";
import { VirtualNet } from "./VirtualNet.ts";
import { VirtualTime } from "./VirtualTime.ts";

/** The virtual parts of a machine. */
export interface Machine {
  readonly time: VirtualTime;
  readonly net: VirtualNet;
  readonly disk: Disk;
  /** The timers of the program that are set. */
  readonly timers: ReadonlySet<object>;
}

/** The disk of the store. */
export interface Disk {
  /** Set while no statement may write. */
  away: "locked" | "full" | undefined;
  /** Everything that the open databases contain, as text. */
  readonly contents: () => string;
}

/** Runs a program on a virtual machine. Everything is put back at its end. */
export const onMachine = async <A>(seed: number, program: (machine: Machine) => Promise<A>): Promise<A> => {
  const undo: Array<() => void> = [];
  const set = (on: object, name: string, value: unknown): void => {
    const before = Object.getOwnPropertyDescriptor(on, name);
    Object.defineProperty(on, name, { value, configurable: true, writable: true });
    undo.push(() => {
      if (before === undefined) Reflect.deleteProperty(on, name);
      else Object.defineProperty(on, name, before);
    });
  };
  let immediates = 0;
  const time = new VirtualTime(() => immediates > 0);
  const virtualNet = new VirtualNet(time);
  setClocks(set, time);
  const timers = new Set<object>();
  setTimers(set, time, timers);
  setImmediates(set, (by) => {
    immediates += by;
  });
  setRandom(set, seeded(seed));
  setSockets(set, virtualNet);
  const open = new Set<DatabaseSync>();
  const disk: Disk = { away: undefined, contents: () => [...open].map(contentsOf).join("\n") };
  setStore(set, disk, open);
  syncBuiltinESMExports();
  try {
    return await program({ time, net: virtualNet, disk, timers });
  } finally {
    for (const put of undo.toReversed()) put();
    syncBuiltinESMExports();
  }
};

type Setting = (on: object, name: string, value: unknown) => void;

const setClocks = (set: Setting, time: VirtualTime): void => {
  set(Date, "now", () => Math.floor(time.wall));
  set(performance, "now", () => time.now);
  set(process.hrtime, "bigint", () => BigInt(Math.round(time.now * 1_000_000)));
};

/** A timer with the methods of Node's. */
class Timer {
  readonly #time: VirtualTime;
  readonly #run: () => void;
  readonly #ms: number;
  readonly #repeats: boolean;
  /** The timers that are set. */
  readonly #all: Set<object>;
  #cancel: () => void;

  constructor(time: VirtualTime, all: Set<object>, ms: number, repeats: boolean, run: () => void) {
    this.#all = all;
    this.#time = time;
    this.#run = run;
    this.#ms = Math.max(1, Number.isFinite(ms) ? ms : 1);
    this.#repeats = repeats;
    this.#cancel = this.#start();
  }

  #start(): () => void {
    this.#all.add(this);
    return this.#time.after(this.#ms, () => {
      this.#all.delete(this);
      if (this.#repeats) this.#cancel = this.#start();
      this.#run();
    });
  }

  refresh(): this {
    this.#cancel();
    this.#cancel = this.#start();
    return this;
  }

  close(): this {
    this.#all.delete(this);
    this.#cancel();
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }
}

const setTimers = (set: Setting, time: VirtualTime, all: Set<object>): void => {
  const make =
    (repeats: boolean) =>
    (run: (...given: ReadonlyArray<unknown>) => void, ms = 1, ...given: ReadonlyArray<unknown>) =>
      new Timer(time, all, ms, repeats, () => run(...given));
  const clear = (timer: unknown) => {
    if (timer instanceof Timer) timer.close();
  };
  set(globalThis, "setTimeout", make(false));
  set(globalThis, "setInterval", make(true));
  set(globalThis, "clearTimeout", clear);
  set(globalThis, "clearInterval", clear);
};

/** Counts the immediates that are left to run. Node runs them. */
const setImmediates = (set: Setting, count: (by: number) => void): void => {
  const { clearImmediate: clear, setImmediate: next } = globalThis;
  const waiting = new Set<NodeJS.Immediate>();
  const wait = (run: () => void): NodeJS.Immediate => {
    count(1);
    const immediate = next(() => {
      waiting.delete(immediate);
      count(-1);
      run();
    });
    waiting.add(immediate);
    return immediate;
  };
  set(globalThis, "setImmediate", (run: (...given: ReadonlyArray<unknown>) => void, ...given: ReadonlyArray<unknown>) =>
    wait(() => run(...given)),
  );
  set(globalThis, "clearImmediate", (immediate: NodeJS.Immediate) => {
    if (waiting.delete(immediate)) count(-1);
    clear(immediate);
  });
  set(timersPromises, "setImmediate", (value: unknown) => new Promise((resolve) => void wait(() => resolve(value))));
};

const setRandom = (set: Setting, next: () => number): void => {
  const fill = <A extends ArrayBufferView>(view: A): A => {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = Math.floor(next() * 256);
    return view;
  };
  const uuid = () => {
    const hex = Buffer.from(fill(new Uint8Array(16))).toString("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  set(Math, "random", next);
  set(crypto, "randomUUID", uuid);
  set(crypto, "randomBytes", (size: number) => Buffer.from(fill(new Uint8Array(size))));
  set(globalThis.crypto, "randomUUID", uuid);
  set(globalThis.crypto, "getRandomValues", fill);
  setSubtle(set, fill);
};

/** Web Crypto answers from threads of its own, in any order. These functions give the same results at once. */
const setSubtle = (set: Setting, fill: (view: Uint8Array) => Uint8Array): void => {
  const { subtle } = globalThis.crypto;
  const keys = new WeakMap<object, Uint8Array>();
  const keyOf = (bytes: Uint8Array): object => {
    const key = {};
    keys.set(key, bytes);
    return key;
  };
  const bytesOf = (buffer: Buffer): ArrayBuffer => Uint8Array.from(buffer).buffer;
  set(subtle, "importKey", async (_: string, raw: Uint8Array) => keyOf(Uint8Array.from(raw)));
  set(subtle, "generateKey", async () => keyOf(fill(new Uint8Array(64))));
  set(subtle, "sign", async (_: unknown, key: object, data: Uint8Array) =>
    bytesOf(
      createHmac("sha256", keys.get(key) ?? "")
        .update(data)
        .digest(),
    ),
  );
  set(subtle, "digest", async (_: unknown, data: Uint8Array) => bytesOf(createHash("sha256").update(data).digest()));
};

/** undici opens its sockets by the exports of `net`, and servers inherit `listen`. */
const setSockets = (set: Setting, virtualNet: VirtualNet): void => {
  const exports: object = createRequire(import.meta.url)("node:net");
  set(exports, "connect", (options: { readonly host: string; readonly port: number | string }) =>
    virtualNet.connect(options.host, Number(options.port)),
  );
  const { close } = net.Server.prototype;
  set(net.Server.prototype, "listen", function (this: net.Server, port: number, _: string, onListening: () => void) {
    virtualNet.listen(this, port);
    this.once("listening", onListening);
    process.nextTick(() => this.emit("listening"));
    return this;
  });
  set(net.Server.prototype, "address", function (this: net.Server) {
    return { address: "127.0.0.1", family: "IPv4", port: virtualNet.portOf(this) };
  });
  set(net.Server.prototype, "close", function (this: net.Server, ...given: Parameters<typeof close>) {
    virtualNet.closeListener(this);
    return close.apply(this, given);
  });
};

/** SQLite's errors, as `node:sqlite` throws them. */
const storeErrors = {
  locked: { message: "database is locked", errcode: 5 },
  full: { message: "database or disk is full", errcode: 13 },
} as const;

/** Makes statements that write fail while the disk is away. */
const setStore = (set: Setting, disk: Disk, open: Set<DatabaseSync>): void => {
  const check = (sql: string): void => {
    if (disk.away === undefined || !/^\s*(?:BEGIN IMMEDIATE|INSERT|UPDATE|DELETE|REPLACE|CREATE)/i.test(sql)) return;
    const { errcode, message } = storeErrors[disk.away];
    throw Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode, errstr: message });
  };
  const { close, exec, prepare } = DatabaseSync.prototype;
  set(DatabaseSync.prototype, "prepare", function (this: DatabaseSync, sql: string) {
    open.add(this);
    return prepare.call(this, sql);
  });
  set(DatabaseSync.prototype, "close", function (this: DatabaseSync) {
    open.delete(this);
    close.call(this);
  });
  set(DatabaseSync.prototype, "exec", function (this: DatabaseSync, sql: string) {
    check(sql);
    return exec.call(this, sql);
  });
  for (const name of ["run", "get", "all"] as const) {
    const original: unknown = StatementSync.prototype[name];
    set(StatementSync.prototype, name, function (this: StatementSync, ...given: ReadonlyArray<unknown>) {
      if (disk.away !== undefined) check(this.sourceSQL);
      return typeof original === "function" ? Reflect.apply(original, this, given) : undefined;
    });
  }
};

const contentsOf = (database: DatabaseSync): string =>
  database
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
    .all()
    .flatMap(({ name }) => database.prepare(`SELECT * FROM "${String(name)}"`).all())
    .flatMap((row) => Object.values(row))
    .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value)))
    .join("\n");
