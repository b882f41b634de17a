/** The packages that `npm run build` makes, used as another project would: packed, unpacked, imported. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readWebFiles } from '../packages/relay/src/web/files.ts';
import { installPackages } from './installed.ts';
import { publishedPackages } from './published-packages.ts';
import { programsOf, runBot, showPage } from './readme-programs.ts';

const root = dirname(import.meta.dirname);
const names = publishedPackages;
let folder: string;

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' });
  folder = installPackages(names);
}, 300_000);

afterAll(() => rmSync(folder, { recursive: true }));

interface Published {
  readonly exports: Record<string, { types: string; default: string }>;
  readonly bin?: Record<string, string>;
  readonly [member: string]: unknown;
}

const manifestOf = (name: string): Published =>
  JSON.parse(
    readFileSync(join(folder, 'node_modules/@posthouse', name, 'package.json'), 'utf8'),
  ) as Published;

/** Names to import the package's modules by. */
const modulesOf = (name: string): string[] =>
  Object.keys(manifestOf(name).exports).map((entry) => `@posthouse/${name}${entry.slice(1)}`);

/** Runs a file of the folder with Node, which finds no TypeScript there to fall back on. */
function run(file: string, ...parameters: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...parameters], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

/** The path of an installed command, from the folder. */
const pathOf = (name: string, command: string) =>
  join('node_modules/@posthouse', name, manifestOf(name).bin?.[command] ?? '');

/** All files of an installed package, as paths from its folder. */
const filesOf = (name: string) =>
  readdirSync(join(folder, 'node_modules/@posthouse', name), {
    recursive: true,
    encoding: 'utf8',
    withFileTypes: true,
  })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name: file }) =>
      relative(join(folder, 'node_modules/@posthouse', name), join(parentPath, file)),
    );

const moduleName = (file: string) => file.replace(/\.(js|d\.ts)$/, '');

/** The modules of a package, without extension, that entries import in code or in declarations. */
function importedBy(name: string, entries: readonly string[]): Set<string> {
  const found = new Set<string>();
  const add = (module: string) => {
    if (found.has(module)) return;
    found.add(module);
    for (const extension of ['.js', '.d.ts']) {
      const path = join(folder, 'node_modules/@posthouse', name, `${module}${extension}`);
      if (!existsSync(path)) continue;
      const text = readFileSync(path, 'utf8');
      const imports = text.matchAll(/(?:from|import)\s*\(?["'`](\.[^"'`]+)["'`]/g);
      const threads = text.matchAll(/new URL\(`(\.\/[\w-]+)\$\{\w+\}`,\s*import\.meta\.url\)/g);
      for (const [, target = ''] of [...imports, ...threads]) {
        add(moduleName(join(dirname(module), target)));
      }
    }
  };
  for (const entry of entries) add(moduleName(join(entry)));
  return found;
}

/** Runs a command, and returns the files of ours and of libraries that it loaded. */
function loadedBy(command: string, ...parameters: string[]): { files: string[]; bytes: number } {
  writeFileSync(
    join(folder, 'loads.mjs'),
    `import { registerHooks } from 'node:module';
     import { writeSync } from 'node:fs';
     registerHooks({ load: (url, context, next) => {
       if (url.startsWith('file:')) writeSync(2, url + '\\n');
       return next(url, context);
     } });`,
  );
  const { stderr } = spawnSync(
    process.execPath,
    ['--import', './loads.mjs', command, ...parameters],
    { cwd: folder, encoding: 'utf8' },
  );
  const files = stderr.split('\n').flatMap((line) => /^file:\/\/(.+)/.exec(line)?.[1] ?? []);
  return { files, bytes: files.reduce((sum, file) => sum + statSync(file).size, 0) };
}

describe.each(names)('@posthouse/%s as published', (name) => {
  test('every entry point imports in plain Node', () => {
    const lines = modulesOf(name).map((module) => `await import('${module}');`);
    writeFileSync(join(folder, `import-${name}.js`), lines.join('\n'));
    expect(run(`import-${name}.js`)).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  test('every command prints its help, and the version of its package', () => {
    const { bin = {}, version } = manifestOf(name);
    for (const command of Object.keys(bin)) {
      const help = run(pathOf(name, command), '--help');
      expect([help.status, help.stdout]).toEqual([0, expect.stringContaining('Usage:')]);
      const printed = { status: 0, stdout: `${version}\n`, stderr: '' };
      expect(run(pathOf(name, command), '--version')).toEqual(printed);
    }
  });

  test('every module is imported by an entry point or a command', () => {
    const { exports, bin = {} } = manifestOf(name);
    const targets = Object.values(exports).map((target) => target.default);
    const used = importedBy(name, [...targets, ...Object.values(bin)]);
    // The files of the messenger and the admin page are for pages, which `files.json` lists.
    const published = filesOf(name).filter(
      (file) => /\.(js|d\.ts)$/.test(file) && !/^(?:messenger|admin-page)\//.test(file),
    );
    expect([...new Set(published.map(moduleName))].filter((module) => !used.has(module))).toEqual(
      [],
    );
  });

  test('imports no package but its dependencies', () => {
    const { dependencies = {}, optionalDependencies = {}, bin = {} } = manifestOf(name);
    const permitted = { ...(dependencies as object), ...(optionalDependencies as object) };
    const bundled = Object.values(bin).map((path) => dirname(join(path)));
    const found = filesOf(name)
      .filter((file) => /\.(js|d\.ts)$/.test(file) && !bundled.includes(dirname(file)))
      .flatMap((file) => {
        const path = join(folder, 'node_modules/@posthouse', name, file);
        const text = readFileSync(path, 'utf8').replace(/^ *(\*|\/\/).*$/gm, '');
        return [
          ...text.matchAll(/(?:\bfrom|\bimport\(?) ?["']((?:@[\w-]+\/)?\w[\w.-]*)[\w./-]*["']/g),
        ];
      })
      .map(([, imported = '']) => imported)
      .filter((imported) => imported !== `@posthouse/${name}`);
    expect(found.length).toBeGreaterThan(0);
    expect([...new Set(found)].filter((one) => !Object.hasOwn(permitted, one))).toEqual([]);
  });

  test('holds a changelog, and no link to a file that is not in the package', () => {
    const pages = filesOf(name).filter((file) => file.endsWith('.md'));
    expect(pages).toContain('CHANGELOG.md');
    const texts = pages.map((file) =>
      readFileSync(join(folder, 'node_modules/@posthouse', name, file), 'utf8'),
    );
    const links = texts.flatMap((text) => [...text.matchAll(/\]\(([\w./-]+)\)/g)]);
    expect(links.map(([, to = '']) => to).filter((to) => !filesOf(name).includes(to))).toEqual([]);
  });

  test('holds no sources and no development dependencies, but the licence', () => {
    const files = filesOf(name);
    expect(files.filter((file) => file.startsWith('vectors/'))).toEqual([]);
    expect(files.filter((file) => /\.ts$/.test(file) && !file.endsWith('.d.ts'))).toEqual([]);
    expect(files).toContain('LICENSE');
    const members = Object.keys(manifestOf(name));
    expect(members.filter((one) => /devDependencies|scripts/.test(one))).toEqual([]);
  });
});

test('the published relay works: its command makes keys and reads them again', () => {
  const command = pathOf('relay', 'posthouse');
  const flags = ['--dev', '--data', join(folder, 'data')];
  const made = run(command, 'init', ...flags);
  const again = run(command, 'init', ...flags);
  expect([made.status, made.stderr]).toEqual([0, '']);
  expect(made.stdout).toMatch(/relay id 0x[0-9a-f]{40}/);
  expect(again.stdout).toBe(made.stdout.replace('keys made', 'keys there already'));
});

test('the published relay has the messenger and the page for operators, whole', () => {
  for (const place of ['messenger', 'admin-page']) {
    const built = readWebFiles(join(folder, 'node_modules/@posthouse/relay', place));
    expect([...built.keys()]).toContain('index.html');
  }
});

describe('commands are small: each loads what it needs', () => {
  const bundled = (name: string) => filesOf(name).filter((file) => /^bin\/.+\.js$/.test(file));
  const bytesOf = (name: string) =>
    bundled(name)
      .map((file) => statSync(join(folder, 'node_modules/@posthouse', name, file)).size)
      .reduce((sum, size) => sum + size, 0);

  test.each([
    ['relay', 2_600_000],
    ['client', 1_400_000],
    ['conformance', 1_400_000],
  ])('the bundle of @posthouse/%s has at most %i bytes', (name, most) => {
    expect(bytesOf(name)).toBeLessThanOrEqual(most);
    expect(bytesOf(name)).toBeGreaterThan(most / 2);
  });

  test.each([
    ['relay', 'posthouse'],
    ['client', 'courier'],
  ])('@posthouse/%s: %s --help loads at most 8 files of 100,000 bytes', (name, command) => {
    const { files, bytes } = loadedBy(pathOf(name, command), '--help');
    expect(files.length).toBeGreaterThan(0);
    expect(files.length).toBeLessThanOrEqual(8);
    expect(bytes).toBeLessThanOrEqual(100_000);
  });

  test('courier whoami loads no parser of Markdown, no cipher of wallets, no fetch', () => {
    const command = pathOf('client', 'courier');
    const { files } = loadedBy(command, 'whoami', '--data', join(folder, 'nothing'));
    const texts = files.map((file) => readFileSync(file, 'utf8'));
    expect(texts.some((text) => text.includes('DatabaseSync'))).toBe(true);
    expect(texts.some((text) => text.includes('html_inline'))).toBe(false);
    expect(texts.some((text) => text.includes('aes key'))).toBe(false);
    writeFileSync(
      join(folder, 'builtins.mjs'),
      "process.on('exit', () => console.log(process.moduleLoadList.join('\\n')));",
    );
    const { stdout } = run('--import', './builtins.mjs', command, 'whoami', '--data', 'nothing');
    expect(stdout).toContain('NativeModule sqlite');
    expect(stdout).not.toContain('undici/undici');
  });

  test('a relay on SQLite loads its bundle and what is native: no PostgreSQL, no NATS', () => {
    // It loads everything and then ends, because nothing can be a folder there.
    const flags = ['--dev', '--data', '/dev/null/data'];
    const { files, bytes } = loadedBy(pathOf('relay', 'posthouse'), 'serve', ...flags);
    const native = /\/@posthouse\/relay\/bin\/|\/node_modules\/(bufferutil|node-gyp-build)\//;
    expect(files.filter((file) => !native.test(file))).toEqual([]);
    const holds = (text: string) => files.some((file) => readFileSync(file, 'utf8').includes(text));
    expect(holds('WebSocketServer')).toBe(true);
    expect(holds('SCRAM-SHA-256')).toBe(false);
    expect(holds('NatsConnectionImpl')).toBe(false);
    expect(holds('This command never signs')).toBe(false);
    expect(holds('tableEncoding')).toBe(false);
    expect(bytes).toBeLessThanOrEqual(2_100_000);
  });

  test.each(['relay', 'client', 'conformance'])(
    'the licence of each library in the bundle of @posthouse/%s is published with it',
    (name) => {
      const path = join(folder, 'node_modules/@posthouse', name);
      const notices = readFileSync(join(path, 'THIRD-PARTY-LICENSES'), 'utf8');
      const sources = filesOf(name)
        .filter((file) => /^bin\/.+\.js\.map$/.test(file))
        .flatMap((file) => {
          const map = JSON.parse(readFileSync(join(path, file), 'utf8')) as { sources: string[] };
          return map.sources;
        });
      const library = /^.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//;
      const found = sources.flatMap((source) => library.exec(source)?.[1] ?? []);
      expect(found).toContain('commander');
      const isNamed = (one: string) =>
        new RegExp(`^${one} \\d\\S+\nLicence: \\S`, 'm').test(notices);
      expect([...new Set(found)].filter((one) => !isNamed(one))).toEqual([]);
    },
  );

  test('a notice has the text of the licence', () => {
    const read = (name: string) =>
      readFileSync(join(folder, 'node_modules/@posthouse', name, 'THIRD-PARTY-LICENSES'), 'utf8');
    expect(read('relay')).toMatch(/^fastify 5.+\nLicence: MIT\n\n.+Fastify/ms);
    expect(read('client')).toMatch(/^commander 14.+\nLicence: MIT\n\n.+Holowaychuk/ms);
    expect(read('client')).not.toContain('fastify');
  });
});

/** A relay of the published command, which ends with status 0. */
async function serveRelay(name: string, level = 'error') {
  const data = join(folder, name);
  const flags = ['serve', '--dev', '--data', data, '--listen', '127.0.0.1:0', '--log', level];
  const relay = spawn(process.execPath, [pathOf('relay', 'posthouse'), ...flags], { cwd: folder });
  const ended = once(relay, 'exit');
  const log: string[] = [];
  relay.stderr.setEncoding('utf8').on('data', (lines: string) => log.push(lines));
  const [ready] = (await once(relay.stdout, 'data')) as [Buffer];
  expect(ready.toString()).toMatch(/^ready https:/);
  return {
    data,
    log: () => log.join(''),
    async [Symbol.asyncDispose]() {
      relay.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
    },
  };
}

test('0026: the published relay verifies with libsodium, which is not in its bundle', async () => {
  let log: () => string;
  {
    await using relay = await serveRelay('verifies', 'info');
    ({ log } = relay);
  }
  expect(log()).toContain('Ed25519 signatures are verified by libsodium');
});

test('the published commands exchange a message', async () => {
  await using relay = await serveRelay('relay');
  const courier = (who: string, ...parameters: string[]) => {
    const home = ['--data', join(folder, who)];
    const { status, stdout, stderr } = run(pathOf('client', 'courier'), ...parameters, ...home);
    expect([status, stderr]).toEqual([0, expect.any(String)]);
    return stdout.trim();
  };
  const registry = ['--registry', join(relay.data, 'registry.json')];
  const network = [...registry, '--ca', join(relay.data, 'tls/ca.pem')];
  const [ann = '', ben = ''] = ['ann', 'ben'].map(
    (who) =>
      (JSON.parse(courier(who, 'setup', '--json', ...network)) as { account: string }).account,
  );
  courier('ben', 'accept', courier('ann', 'invite'));
  courier('ann', 'sync');
  courier('ann', 'accept', ben);
  courier('ben', 'send', ann, 'hello');
  expect(courier('ann', 'inbox')).toMatch(/hello$/);
}, 120_000);

const chromiumPath = '/usr/bin/chromium';

/** A program that sends the bot a message without text; it begins as the bot does. */
function sendsAttachment(bot: string, invite: string): string {
  const [beginning = ''] = bot.split('const bot');
  return `${beginning.replace('bot.sqlite', 'sender.sqlite')}
const account = await client.setUp();
const uploader = { put: async () => 'https://files.example.com/1' };
const file = { contentType: 'image/png', uploader };
const attachments = [await account.attachments.seal(new Uint8Array(1), file)];
await account.contacts.join(${JSON.stringify(invite)});
for await (const event of account.follow()) {
  if (event.kind === 'contact-changed') await account.messages.post(event.account, { attachments });
  if (event.kind === 'message-status' && event.status === 'target_accepted') console.log('sent');
}`;
}

test.skipIf(!existsSync(chromiumPath))(
  'the bot of the client’s README answers its page, also after a message without text',
  async () => {
    await using relay = await serveRelay('relay-of-bot');
    const [bot = '', page = ''] = programsOf(
      readFileSync(join(folder, 'node_modules/@posthouse/client/README.md'), 'utf8'),
    );
    expect([bot, page].map((program) => program.trim().split('\n').length <= 24)).toEqual([
      true,
      true,
    ]);
    await using running = await runBot(bot, { folder, relay: relay.data });
    const sender = sendsAttachment(bot, running.firstLine);
    await using sending = await runBot(sender, { folder, relay: relay.data });
    expect(sending.firstLine).toBe('sent');
    const registry = readFileSync(join(relay.data, 'registry.json'), 'utf8');
    await using shown = await showPage(page, { folder, registry, chromiumPath });
    await shown.open(`#${encodeURIComponent(running.firstLine)}`);
    await expect.poll(shown.text, { timeout: 60_000 }).toContain('You wrote: Hello');
  },
  120_000,
);

/** Compiles a file of another project, with every declaration that it leads to. */
function compile(source: readonly string[], lib: readonly string[], types: readonly string[]) {
  writeFileSync(join(folder, 'user.ts'), source.join('\n'));
  const options = {
    compilerOptions: {
      ...{ strict: true, noEmit: true, module: 'NodeNext', target: 'ES2024' },
      ...{ lib, types, skipLibCheck: false },
    },
    files: ['user.ts'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { status, stdout } = spawnSync(tsc, ['-p', folder], { encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, '']);
}

test('the declarations for pages need only the `lib` that the README names', () => {
  const modules = ['client', 'protocol'].flatMap(modulesOf).filter((one) => !/\/node/.test(one));
  const lines = modules.map((module, index) => `export * as m${index} from '${module}';`);
  compile(lines, ['ES2024', 'ESNext.Disposable', 'DOM'], []);
});

test('the declarations serve another project’s compiler', () => {
  const lines = names.flatMap((name) =>
    modulesOf(name).map((module, index) => `import * as ${name}_${index} from '${module}';`),
  );
  const used = lines.map((line) => /as (\w+)/.exec(line)?.[1]);
  const source = [
    ...lines,
    "import { Network, type ChannelPost } from '@posthouse/protocol';",
    "import { noblePrimitives } from '@posthouse/protocol/crypto';",
    'export const network = new Network({ context: "", primitives: noblePrimitives });',
    'export const id = (post: ChannelPost): string => post.message_id;',
    '// @ts-expect-error a channel post has no such member',
    'export const none = (post: ChannelPost): string => post.subject;',
    `export const all = [${used.join(', ')}];`,
  ];
  compile(source, ['ES2024', 'ESNext.Disposable'], ['node']);
});
