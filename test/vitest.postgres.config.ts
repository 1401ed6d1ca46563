import { defineConfig } from "vitest/config";
import { suiteOf } from "./Suites.ts";

export default defineConfig(suiteOf("postgres"));
