/**
 * Keeps what has a deadline, the earliest first: a binary heap whose members know their place in it.
 *
 * One whose deadline moves away need not say so. It stands under a time before which nothing is due, and whoever finds it first
 * asks it again. So an event costs those nothing whose deadline it moves, and a look asks only those that may be due.
 */

/** What stands among deadlines. Only they write it. */
export interface Due {
  /** Says who came first where two stand under one time. */
  readonly id: number;
  /** Before then it is not due, in monotonic milliseconds. */
  dueAt: number;
  /** Where it stands; negative while it does not. */
  place: number;
}

/** Members by their deadline. */
export class Deadlines<D extends Due> {
  /** By place, each before its two children; at most as many as are under way. */
  readonly #members: Array<D> = [];

  get size(): number {
    return this.#members.length;
  }

  /** The member that stands under the first time, or of those the one that came first; undefined where there is none. */
  get first(): D | undefined {
    return this.#members[0];
  }

  /** The members of this moment, in no order: what happens to them meanwhile changes nothing in it. */
  values(): ReadonlyArray<D> {
    return this.#members.slice();
  }

  has(member: D): boolean {
    return this.#members[member.place] === member;
  }

  /** Takes a member in, or moves it, so that it is not due before `at`. */
  set(member: D, at: number): void {
    member.dueAt = at;
    if (this.has(member)) this.#settle(member, member.place);
    else this.#rise(member, this.#members.length);
  }

  /** Takes a member out; whether it was there. */
  delete(member: D): boolean {
    if (!this.has(member)) return false;
    const { place } = member;
    member.place = -1;
    const last = this.#members.pop();
    if (last !== undefined && last !== member) this.#settle(last, place);
    return true;
  }

  /**
   * The members that may be due at a time, each behind those that stand below it: moved away in this order, each takes a step or two
   * and not the way through all.
   */
  due(at: number): ReadonlyArray<D> {
    const found: Array<D> = [];
    this.#addDue(at, 0, found);
    return found;
  }

  #addDue(at: number, place: number, found: Array<D>): void {
    const member = this.#members[place];
    if (member === undefined || member.dueAt > at) return;
    this.#addDue(at, 2 * place + 1, found);
    this.#addDue(at, 2 * place + 2, found);
    found.push(member);
  }

  /** Puts a member where it belongs, from a place that is free or its own. */
  #settle(member: D, place: number): void {
    this.#sink(member, place);
    if (member.place === place) this.#rise(member, place);
  }

  #rise(member: D, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#members[above];
      if (parent === undefined || !isBefore(member, parent)) break;
      this.#stand(parent, place);
      place = above;
    }
    this.#stand(member, place);
  }

  #sink(member: D, from: number): void {
    let place = from;
    for (;;) {
      const child = this.#nearerChild(place);
      if (child === undefined || !isBefore(child, member)) break;
      const next = child.place;
      this.#stand(child, place);
      place = next;
    }
    this.#stand(member, place);
  }

  #nearerChild(place: number): D | undefined {
    const left = this.#members[2 * place + 1];
    const right = this.#members[2 * place + 2];
    return left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
  }

  #stand(member: D, place: number): void {
    this.#members[place] = member;
    member.place = place;
  }
}

const isBefore = (one: Due, other: Due): boolean =>
  one.dueAt < other.dueAt || (one.dueAt === other.dueAt && one.id < other.id);
