// Both programs keep their jobs here: in a folder of this example's own, not in the one of your project.
import { join } from "node:path";

export const dataDir = join(import.meta.dirname, ".millrace");
