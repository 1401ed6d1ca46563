/** The share of the products of Laws.test.ts and RunLaws.test.ts that the quick suite omits. */
import { permissionShrinks } from "./LawCases.ts";
import { permissionShrinksIn } from "./RunLawCases.ts";

permissionShrinks("long");
permissionShrinksIn("long");
