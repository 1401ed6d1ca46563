/**
 * A virtual clock with its timers.
 *
 * Time stands still while anything is left to run: only after all microtasks, ticks and immediates does it jump to the next timer. Each
 * timer belongs to an owner, so that a stopped process runs none of its own while the world around it continues.
 */
/** The owner of a timer: a process of the gateway, or the world around it. */
export type Owner = "gateway" | "world";

interface Due {
  readonly at: number;
  readonly number: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** Maximum turns of the event loop in one virtual instant. Beyond it, the code under test runs in a circle. */
const turnsMax = 20_000;

/** The start of every world, in milliseconds since the epoch. */
const epoch = Date.UTC(2026, 0, 1);

/** Thrown if virtual time cannot go on because the code under test never waits. */
export class TimeStandsStill extends Error {
  override readonly name = "TimeStandsStill";
}

/** A clock with its timers. */
export class VirtualTime {
  /** Monotonic milliseconds since the start of the world. */
  now = 0;
  /** Difference of the wall clock to the monotonic clock after jumps, in milliseconds. */
  wallOffset = 0;
  /** The owner of the code that runs now, and so of the timers that it sets. */
  owner: Owner = "world";
  /** Number of timers that have run. */
  fired = 0;
  #stoppedUntil = 0;
  #number = 0;
  readonly #heaps = { gateway: [] as Array<Due>, world: [] as Array<Due> };
  readonly #isBusy: () => boolean;

  /** @param isBusy true while an immediate is left to run */
  constructor(isBusy: () => boolean) {
    this.#isBusy = isBusy;
  }

  /** Milliseconds since the epoch. */
  get wall(): number {
    return epoch + this.now + this.wallOffset;
  }

  /** Calls back after a time. @returns a function that cancels the call */
  after(ms: number, run: () => void, owner: Owner = this.owner): () => void {
    const due: Due = { at: this.now + Math.max(0, ms), number: this.#number++, run, cancelled: false };
    push(this.#heaps[owner], due);
    return () => {
      due.cancelled = true;
    };
  }

  /** Stops the gateway's process for a time. Its timers run late, all at once, as after SIGCONT. */
  stop(ms: number): void {
    this.#stoppedUntil = Math.max(this.#stoppedUntil, this.now + ms);
  }

  /** Runs everything that is left to run at this instant. */
  async drain(): Promise<void> {
    let turns = 0;
    do {
      await turn();
      turns += 1;
      if (turns > turnsMax)
        throw new TimeStandsStill(`more than ${turnsMax} turns of the event loop at ${Math.round(this.now)} ms`);
    } while (this.#isBusy());
  }

  /** Moves time until the condition holds or the time limit is reached. @returns true if the condition holds */
  async runUntil(isDone: () => boolean, limitMs: number): Promise<boolean> {
    await this.drain();
    while (!isDone()) {
      const [owner, at] = this.#first();
      if (at > limitMs) {
        this.now = Math.max(this.now, limitMs);
        return false;
      }
      const due = pop(this.#heaps[owner]);
      this.now = Math.max(this.now, at);
      this.owner = owner;
      this.fired += 1;
      due?.run();
      await this.drain();
      this.owner = "world";
    }
    return true;
  }

  /** The owner of the next timer and the time at which it runs; an infinite time if there is none. */
  #first(): readonly [owner: Owner, at: number] {
    const [gateway, world] = [firstOf(this.#heaps.gateway), firstOf(this.#heaps.world)];
    const atGateway = gateway === undefined ? Number.POSITIVE_INFINITY : Math.max(gateway.at, this.#stoppedUntil);
    const atWorld = world === undefined ? Number.POSITIVE_INFINITY : world.at;
    const isWorld = atWorld < atGateway || (atWorld === atGateway && (world?.number ?? 0) < (gateway?.number ?? 0));
    return isWorld ? ["world", atWorld] : ["gateway", atGateway];
  }
}

/** Node's own immediate. Microtasks and ticks run before it. */
const realImmediate = globalThis.setImmediate;

const turn = (): Promise<void> =>
  new Promise((resolve) => {
    realImmediate(resolve);
  });

const firstOf = (heap: Array<Due>): Due | undefined => {
  while (heap[0]?.cancelled === true) pop(heap);
  return heap[0];
};

const isBefore = (one: Due, other: Due): boolean =>
  one.at < other.at || (one.at === other.at && one.number < other.number);

const push = (heap: Array<Due>, due: Due): void => {
  let at = heap.push(due) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || !isBefore(due, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = due;
};

const pop = (heap: Array<Due>): Due | undefined => {
  const first = heap[0];
  const last = heap.pop();
  if (first === undefined || last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    const [left, right] = [heap[child], heap[child + 1]];
    if (left === undefined) break;
    if (right !== undefined && isBefore(right, left)) child += 1;
    const below = heap[child];
    if (below === undefined || !isBefore(below, last)) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = last;
  return first;
};
