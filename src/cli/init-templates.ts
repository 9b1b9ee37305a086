// What `millrace init` writes: one text per file, for TypeScript and JavaScript, modules and CommonJS.

export interface Project {
  readonly typeScript: boolean;
  /** package.json says "type": "module". */
  readonly modules: boolean;
}

export interface Written {
  readonly name: string;
  readonly text: string;
}

export function projectFiles(project: Project): Written[] {
  const type = project.typeScript ? "ts" : "js";
  return [
    { name: `hello.${type}`, text: job(project) },
    { name: `worker.${type}`, text: worker(project) },
    { name: `hello.test.${type}`, text: test(project) },
  ];
}

/** TypeScript is written with `import` whatever it is compiled to. */
const isRequired = ({ typeScript, modules }: Project): boolean => !typeScript && !modules;

function imports(project: Project, names: string, from: string): string {
  return isRequired(project)
    ? `const { ${names} } = require("${from}");`
    : `import { ${names} } from "${from}";`;
}

const asType = ({ typeScript }: Project, type: string): string => (typeScript ? ` as ${type}` : "");

const job = (project: Project): string => `${imports(project, "defineJob", "millrace")}

// A kind of job: its name, its queue and what it does. An error that it throws is retried with growing
// pauses, five times in all; after that the job is a dead letter and waits for a person.
${isRequired(project) ? "const" : "export const"} hello = defineJob({
  type: "hello",
  queue: "greetings",
  async run({ payload, attempt, log }) {
    const { name } = payload${asType(project, "{ name: string }")};
    log.info(\`attempt \${attempt}: greeting \${name}\`);
    return \`Hello, \${name}!\`;
  },
});
${isRequired(project) ? "\nmodule.exports = { hello };\n" : ""}`;

const worker = (project: Project): string => `${imports(project, "Millrace", "millrace")}
${imports(project, "hello", "./hello.js")}

// Runs jobs until Ctrl-C. As many of these processes as you like may run, on as many machines.
async function main() {
  // DATABASE_URL, or an embedded PostgreSQL under ./.millrace.
  const millrace = await Millrace.connect();
  await millrace.manage();
  await millrace.work([hello], { concurrency: 10 });
  console.log("Working; Ctrl-C stops.");

  // What runs is finished first.
  for (const signal of ["SIGINT", "SIGTERM"]${asType(project, "const")}) process.once(signal, () => millrace.stop());
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
`;

const test = (
  project: Project,
): string => `${imports(project, isRequired(project) ? "strict: assert" : "strict as assert", "node:assert")}
${imports(project, "test", "node:test")}
${imports(project, "createTestMillrace", "millrace/testing")}
${imports(project, "hello", "./hello.js")}

test("greets by name", async () => {
  // A database of its own, thrown away afterwards.
  const { millrace, drain, stop } = await createTestMillrace();
  try {
    const { id } = await millrace.enqueue(hello, { name: "Ada" });
    await drain([hello]);
    assert.equal(await millrace.result(id), "Hello, Ada!");
  } finally {
    await stop();
  }
});
`;
