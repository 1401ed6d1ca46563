/**
 * A binary heap of members by deadline, earliest first, in which each member knows its own position.
 *
 * A member whose deadline moves later does not have to report it. Its entry is only a time before which it is not due, and when that time
 * comes, a check reads the member's real deadline. So moving a deadline later costs nothing, and a check reads only members that may be
 * due.
 */

/** A member of `Deadlines`. Only `Deadlines` writes `dueAt` and `place`. */
export interface Due {
  /** Breaks ties between equal times, lower ids first. */
  readonly id: number;
  /** The member is not due before this time, in monotonic milliseconds. */
  dueAt: number;
  /** Position in the heap; negative if the member is not in it. */
  place: number;
}

/** Members ordered by deadline. */
export class Deadlines<D extends Due> {
  /** The heap array: each member precedes its two children. Bounded by the number of live members. */
  readonly #members: Array<D> = [];

  get size(): number {
    return this.#members.length;
  }

  /** The member with the earliest time, ties broken by id; undefined if there is none. */
  get first(): D | undefined {
    return this.#members[0];
  }

  /** A copy of the current members in no particular order. Later changes do not affect it. */
  values(): ReadonlyArray<D> {
    return this.#members.slice();
  }

  has(member: D): boolean {
    return this.#members[member.place] === member;
  }

  /** Adds or moves a member, which is not due before `at`. */
  set(member: D, at: number): void {
    member.dueAt = at;
    if (this.has(member)) this.#restoreOrder(member, member.place);
    else this.#siftUp(member, this.#members.length);
  }

  /** Removes a member. Returns true if it was there. */
  delete(member: D): boolean {
    if (!this.has(member)) return false;
    const { place } = member;
    member.place = -1;
    const last = this.#members.pop();
    if (last !== undefined && last !== member) this.#restoreOrder(last, place);
    return true;
  }

  /**
   * Returns the members that may be due at a time, children before parents. Moving them later in this order takes one or two steps each
   * instead of a walk through the whole heap.
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

  /** Restores the heap order for a member that is at its own position or moves into a free one. */
  #restoreOrder(member: D, place: number): void {
    this.#siftDown(member, place);
    if (member.place === place) this.#siftUp(member, place);
  }

  #siftUp(member: D, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#members[above];
      if (parent === undefined || !isBefore(member, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(member, place);
  }

  #siftDown(member: D, from: number): void {
    let place = from;
    for (;;) {
      const child = this.#nearerChild(place);
      if (child === undefined || !isBefore(child, member)) break;
      const next = child.place;
      this.#put(child, place);
      place = next;
    }
    this.#put(member, place);
  }

  #nearerChild(place: number): D | undefined {
    const left = this.#members[2 * place + 1];
    const right = this.#members[2 * place + 2];
    return left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
  }

  #put(member: D, place: number): void {
    this.#members[place] = member;
    member.place = place;
  }
}

const isBefore = (one: Due, other: Due): boolean =>
  one.dueAt < other.dueAt || (one.dueAt === other.dueAt && one.id < other.id);
