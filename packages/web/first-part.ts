/**
 * Keeps what a first visit loads in one file. Without this, each set of modules that the page shares with
 * some of its later parts is a file of its own: twenty small ones, which compress worse together.
 */
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { type BuildOptions, build, type Loader, type Plugin } from 'esbuild';

/**
 * The modules that are loaded when they are needed. A build of its own finds them all: while a module is
 * read it is not known yet whether one that is read after it will load it so.
 */
async function laterModules(options: BuildOptions, itself: string): Promise<Set<string>> {
  const plugins = (options.plugins ?? []).filter(({ name }) => name !== itself);
  const { metafile } = await build({ ...options, plugins, write: false, metafile: true });
  const later = Object.values(metafile?.inputs ?? {})
    .flatMap(({ imports }) => imports)
    .filter(({ kind, external }) => kind === 'dynamic-import' && external !== true);
  return new Set(later.map(({ path }) => join(options.absWorkingDir ?? '', path)));
}

/** @param entry path of the page's script, relative to the folder of the build */
export function firstPart(entry: string): Plugin {
  const name = 'first part';
  return {
    name,
    setup({ initialOptions, onLoad, onStart }) {
      let later: ReadonlySet<string> = new Set();
      onStart(async () => {
        later = await laterModules(initialOptions, name);
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
