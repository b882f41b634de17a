/**
 * Keeps what a first visit loads in one file. Without this, each set of modules that the page shares with
 * some of its later parts is a file of its own: twenty small ones, which compress worse together.
 */
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import type { Loader, Plugin } from 'esbuild';

/** @param entry path of the page's script, relative to the folder of the build */
export function firstPart(entry: string): Plugin {
  return {
    name: 'first part',
    setup({ initialOptions, onLoad, onResolve, resolve }) {
      const later = new Set<string>();
      onResolve({ filter: /^\.|^@posthouse\// }, async ({ kind, path, pluginData, ...from }) => {
        if (kind !== 'dynamic-import' || pluginData === 'resolved') return undefined;
        const found = await resolve(path, { ...from, kind, pluginData: 'resolved' });
        if (!found.external) later.add(found.path);
        return found;
      });
      onLoad({ filter: /\.tsx?$/ }, async ({ path }) => {
        if (!later.has(path)) return undefined;
        const { absWorkingDir } = initialOptions;
        const contents = `${await readFile(path, 'utf8')}\nimport '${absWorkingDir}/${entry}';\n`;
        return { contents, loader: extname(path).slice(1) as Loader };
      });
    },
  };
}
