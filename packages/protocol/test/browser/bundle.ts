import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Plugin } from 'esbuild';

const protocol = fileURLToPath(new URL('../../', import.meta.url));
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));

/**
 * Bundles for a page. A Node module anywhere makes esbuild fail: the platform has none.
 *
 * @returns the script, and which files went into it
 */
async function bundle(
  contents: string,
  options: Pick<BuildOptions, 'plugins' | 'ignoreAnnotations'> = {},
) {
  const result = await build({
    stdin: { contents, resolveDir: protocol, loader: 'ts' },
    bundle: true,
    write: false,
    metafile: true,
    platform: 'browser',
    format: 'iife',
    target: 'es2024',
    logLevel: 'silent',
    ...options,
  });
  return { script: result.outputFiles[0]?.text ?? '', inputs: Object.keys(result.metafile.inputs) };
}

/** Bundles every entry of the package but `./node`, as an application would. */
export function bundlePackage() {
  const entries = [
    'crypto/index',
    'federation/index',
    'json/index',
    'markdown/index',
    'terminal',
    'index',
  ];
  const imports = entries.map((name, index) => `import * as e${index} from './src/${name}.ts';`);
  const all = entries.map((_, index) => `...e${index}`).join(', ');
  return bundle(`${imports.join('\n')} globalThis.protocol = { ${all} };`);
}

/** What a page has in place of the modules that need Node. */
const standIns: Readonly<Record<string, string>> = {
  vitest: 'page-vitest.ts',
  '../../src/node/primitives.ts': 'page-primitives.ts',
  './vector-files.ts': 'page-files.ts',
  './files.ts': 'page-files.ts',
};

const standIn: Plugin = {
  name: 'stand-ins',
  setup({ onResolve }) {
    onResolve(
      { filter: /^(vitest|.*\/src\/node\/primitives\.ts|\.\/(vector-)?files\.ts)$/ },
      (args) => ({
        path: here(standIns[args.path] as string),
      }),
    );
  },
};

/** Names of the test files over published vectors, without `.test.ts`. */
export function publishedTests(): string[] {
  return readdirSync(new URL('../interop/', import.meta.url))
    .filter((file) => file.endsWith('.test.ts') && file !== 'coverage.test.ts')
    .map((file) => file.slice(0, -'.test.ts'.length));
}

/** The tests over all vectors; `runVectors()` in the page runs them. */
export function bundleTests() {
  const files = publishedTests().map((name) => `./test/interop/${name}.test.ts`);
  const imports = [...files, './test/vectors/own.test.ts'].map((file) => `import '${file}';`);
  const run = "import { runRegistered } from './test/browser/page-vitest.ts';";
  return bundle([run, ...imports, 'globalThis.runVectors = runRegistered;'].join('\n'), {
    plugins: [standIn],
    // A test file is imported for its effect, which the package says its files do not have.
    ignoreAnnotations: true,
  });
}
