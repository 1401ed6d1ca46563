/**
 * Follows the links of Markdown pages.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { anchors, relativeLinks } from "./Markdown.ts";

/** A link that leads nowhere. */
export interface BrokenLink {
  /** The page with the link's line. */
  readonly at: string;
  /** From the root, without the anchor. */
  readonly target: string;
  readonly anchor: string | undefined;
}

/**
 * The broken links of a page, and those to forbidden places.
 *
 * @param root the folder that the page's path begins in
 * @param page the page
 * @param allowed returns true if a link may lead to a path
 */
export const brokenLinks = (
  root: string,
  page: string,
  allowed: (target: string) => boolean,
): ReadonlyArray<BrokenLink> =>
  relativeLinks(readFileSync(join(root, page), "utf8")).flatMap(({ anchor, line, path }) => {
    const target = path === "" ? page : normalize(join(dirname(page), path));
    const file = join(root, target);
    const leads = allowed(target) && existsSync(file) && hasHeading(file, anchor);
    return leads ? [] : [{ at: `${page}:${line}`, target, anchor }];
  });

const hasHeading = (file: string, anchor: string | undefined): boolean =>
  anchor === undefined ||
  statSync(file).isDirectory() ||
  !file.endsWith(".md") ||
  anchors(readFileSync(file, "utf8")).has(anchor);

/**
 * Returns true if a path is one of the package's files.
 *
 * @param files the `files` of package.json
 */
export const isShipped = (files: ReadonlyArray<string>, target: string): boolean =>
  files.some((file) => target === file || target.startsWith(`${file}/`));
