/**
 * Installs the SDKs of the conformance columns behind a gateway, before the first test of a suite, as Vitest's `globalSetup`.
 */
import { install, isInstalled } from "../packages/Install.ts";

/** The folder in which the SDKs are installed. */
export const sdkFolder: string = import.meta.dirname;

/** True if the SDKs are installed. */
export const hasSdks: boolean = isInstalled(sdkFolder);

export default (): void => install(sdkFolder);
