/**
 * Starts one PostgreSQL for the whole suite before its first test. Each test creates its own database in it.
 */
import type { TestProject } from "vitest/node";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of the server's Unix socket. */
    readonly postgresSocket: string;
  }
}

export default function setup(project: TestProject): () => void {
  let folder = Cluster.programs();
  if (folder === undefined && Cluster.install()) folder = Cluster.programs();
  if (folder === undefined) {
    throw new Error("these tests need PostgreSQL: install it, or name the folder of its programs in $POSTGRES_BIN");
  }
  const cluster = Cluster.make(folder);
  project.provide("postgresSocket", cluster.socket);
  return () => cluster.remove();
}
