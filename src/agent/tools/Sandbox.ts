/**
 * Confines paths to one directory: by their text, and by where their symbolic links lead.
 *
 * It keeps a model inside of its directory. It does not stop a program that races it, nor the shell tool, which can do whatever
 * its user can.
 */
import { lstatSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** A path that leads out of the sandbox, or to a thing that a tool does not touch. The model reads the message. */
export class Escape extends Error {
  override readonly name = "Escape";
}

/** One directory, and the paths below it. */
export class Sandbox {
  /** The directory, with every symbolic link of its own path resolved. */
  readonly root: string;

  /** @param directory one that exists */
  constructor(directory: string) {
    this.root = realpathSync(directory);
  }

  /**
   * The place that a path names.
   *
   * @param path relative to the sandbox, or absolute and inside
   * @returns an absolute path whose every existing part lies inside
   * @throws Escape when it leads out, or through a symbolic link that leads out or nowhere
   */
  inside(path: string): string {
    if (path.includes("\0")) throw new Escape("the path has a null character in it");
    const wanted = resolve(this.root, path);
    if (!this.#holds(wanted)) throw new Escape(`${path} is outside of the sandbox`);
    const real = realOf(wanted);
    if (real === undefined) throw new Escape(`${path} is a symbolic link that leads nowhere`);
    if (!this.#holds(real)) throw new Escape(`${path} leads out of the sandbox`);
    return real;
  }

  /** How a place is called inside. */
  nameOf(place: string): string {
    return relative(this.root, place).split(sep).join("/") || ".";
  }

  #holds(place: string): boolean {
    const way = relative(this.root, place);
    return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
  }
}

/** A place with its symbolic links resolved as far as it exists; undefined where a link on the way leads nowhere. */
const realOf = (place: string): string | undefined => {
  let existing = place;
  const missing: Array<string> = [];
  while (lstatSync(existing, { throwIfNoEntry: false }) === undefined) {
    missing.unshift(existing.slice(dirname(existing).length).replace(/^[/\\]/, ""));
    existing = dirname(existing);
  }
  try {
    return join(realpathSync(existing), ...missing);
  } catch {
    // The entry exists and cannot be resolved: a link to nowhere, or a ring of links.
    return undefined;
  }
};
