/**
 * All tables, in the order of the documentation.
 */

import { connections } from "./Connections.ts";
import { collecting } from "./clients/Collecting.ts";
import { http2 } from "./Http2Expected.ts";
import { responses, streams } from "./Responses.ts";
import type { Section } from "./Section.ts";

export const sections: ReadonlyArray<Section> = [connections, responses, streams, http2, collecting];
