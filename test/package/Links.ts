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
 * The links of a page that lead to no file, to no heading, or where they may not.
 *
 * @param root the folder that the page's path begins in
 * @param page the page
 * @param allowed whether a link may lead to a path
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
 * Whether a path is one of the package's files.
 *
 * @param files what package.json says of them
 */
export const isShipped = (files: ReadonlyArray<string>, target: string): boolean =>
  files.some((file) => target === file || target.startsWith(`${file}/`));
