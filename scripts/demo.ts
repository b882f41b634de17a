/**
 * `npm run demo`: a relay in a folder of its own, and people who use it with the command `courier`.
 * Two accounts, three devices, an invite, messages both ways, a device that was away, and a relay
 * that is killed in the middle. Real keys, real sockets, real TLS; everything is gone afterwards.
 * Exits with a status other than 0 if any step is not as it should be.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';

const root = join(import.meta.dirname, '..');
const relayMain = join(root, 'packages/relay/src/main.ts');
const courierMain = join(root, 'packages/client/src/courier/main.ts');

const bold = (line: string) => (process.stdout.isTTY ? `\u001b[1m${line}\u001b[0m` : line);
const say = (line = '') => process.stdout.write(`${line}\n`);

function chapter(title: string): void {
  say();
  say(bold(title));
}

/** Says that something is as it should be, or ends the demo. */
function expect(found: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(found, expected)) {
    throw new Error(
      `${what}\n  expected ${JSON.stringify(expected)}\n  found    ${JSON.stringify(found)}`,
    );
  }
  say(`  ok: ${what}`);
}

/** Milliseconds any single step may take. */
const patience = 60_000;

function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve(child.exitCode);
  }
  return new Promise((resolve) => child.once('exit', resolve));
}

/** A port nobody listens on: the relay must come back at the same address. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** `posthouse serve --dev`, as a process of its own. */
class Relay {
  readonly folder: string;
  readonly #port: number;
  #child: ChildProcess | undefined;

  constructor(folder: string, port: number) {
    this.folder = folder;
    this.#port = port;
  }

  async start(): Promise<void> {
    const child = spawn(
      process.execPath,
      [relayMain, 'serve', '--dev', '--data', this.folder, '--listen', `127.0.0.1:${this.#port}`],
      { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, POSTHOUSE_LOG: 'error' } },
    );
    this.#child = child;
    const lines = createInterface({ input: child.stdout });
    const ready = await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve);
      child.once('exit', (code) => reject(new Error(`the relay ended with ${code}`)));
      setTimeout(() => reject(new Error('the relay does not get ready')), patience).unref();
    });
    say(`  relay: ${ready.split(' ').slice(0, 4).join(' ')}`);
  }

  /** As a power cut would end it: nothing is flushed, nobody is told. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    if (this.#child !== undefined) await exitOf(this.#child);
  }
}

interface Ran {
  readonly exit: number | null;
  readonly out: string;
  readonly error: string;
}

/** A device: a folder, and `courier` run in it. */
class Device {
  readonly name: string;
  readonly #folder: string;

  constructor(name: string, folder: string) {
    this.name = name;
    this.#folder = folder;
  }

  start(...args: readonly string[]): ChildProcess {
    return spawn(process.execPath, [courierMain, ...args], {
      env: { ...process.env, COURIER_HOME: this.#folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  /** Runs a command and shows it as it was typed, with what it said. */
  async type(...args: readonly string[]): Promise<Ran> {
    const ran = await this.#run(args);
    const shown = args.map((arg) => (arg.length > 60 ? `${arg.slice(0, 24)}…` : arg)).join(' ');
    say(`  ${this.name}$ courier ${shown}`);
    for (const line of `${ran.out}${ran.error}`.split('\n')) {
      if (line !== '') say(`    ${line.length > 92 ? `${line.slice(0, 92)}…` : line}`);
    }
    return ran;
  }

  /** Runs a command that must succeed. */
  async do(...args: readonly string[]): Promise<string> {
    const { exit, out, error } = await this.type(...args);
    if (exit !== 0) throw new Error(`courier ${args[0]} ended with ${exit}: ${error}`);
    return out.trim();
  }

  /** Asks without showing; for the checks. */
  // biome-ignore lint/suspicious/noExplicitAny: each command has its own JSON.
  async ask(...args: readonly string[]): Promise<any> {
    const { exit, out, error } = await this.#run([...args, '--json']);
    if (exit !== 0) throw new Error(`courier ${args[0]} ended with ${exit}: ${error}`);
    return JSON.parse(out);
  }

  /** Texts of its messages, in order of arrival. */
  async texts(): Promise<string[]> {
    const { messages } = await this.ask('inbox');
    return messages.map((message: { text: string }) => message.text);
  }

  async #run(args: readonly string[]): Promise<Ran> {
    const child = this.start(...args);
    const timer = setTimeout(() => child.kill('SIGKILL'), patience);
    const [exit, out, error] = await Promise.all([
      exitOf(child),
      text(child.stdout as NodeJS.ReadableStream),
      text(child.stderr as NodeJS.ReadableStream),
    ]);
    clearTimeout(timer);
    return { exit, out, error };
  }
}

/** `courier inbox --follow`, which stays; what it says can be waited for. */
class Follower {
  readonly #child: ChildProcess;
  readonly #events: { event: string; message?: { text: string } }[] = [];
  #wake: () => void = () => {};

  constructor(device: Device) {
    this.#child = device.start('inbox', '--follow', '--json');
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      this.#events.push(JSON.parse(line));
      this.#wake();
    });
  }

  /** Waits until an event that fits was seen; events that were waited for are gone. */
  async sees(
    what: string,
    fits: (event: { event: string; message?: { text: string } }) => boolean,
  ) {
    const deadline = AbortSignal.timeout(patience);
    for (;;) {
      const index = this.#events.findIndex(fits);
      if (index >= 0) {
        this.#events.splice(0, index + 1);
        say(`  ok: live: ${what}`);
        return;
      }
      if (this.#child.exitCode !== null) throw new Error(`following ended before: ${what}`);
      if (deadline.aborted) throw new Error(`not seen live: ${what}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        deadline.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }

  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    return await exitOf(this.#child);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

async function play(folder: string, relay: Relay, cleanUp: DisposableStack): Promise<void> {
  const network = [
    ...['--registry', join(relay.folder, 'registry.json')],
    ...['--ca', join(relay.folder, 'tls', 'ca.pem')],
  ];
  const device = (name: string) => new Device(name, join(folder, name));
  const [phone, laptop, bob] = [device('ann-phone'), device('ann-laptop'), device('bob')];

  chapter('A relay starts in an empty folder');
  await relay.start();

  chapter('Two people make their accounts');
  await phone.do('setup', ...network);
  await bob.do('setup', ...network);
  const ann = await phone.ask('whoami');
  const bobs = await bob.ask('whoami');
  expect(ann.account !== bobs.account, true, 'two accounts, each with a key of its own');
  await phone.do('profile', '--nickname', 'Ann');

  chapter('An invite, handed over by any way');
  const invite = await phone.do('invite');
  await bob.do('accept', invite, '--note', 'Bob, from the fair', '--as', 'ann');
  expect((await bob.ask('contacts')).contacts[0].standing, 'awaiting', 'Bob waits for her answer');
  await phone.do('inbox');
  await phone.do('accept', bobs.account, '--as', 'bob');
  await bob.do('sync');
  expect((await bob.ask('contacts')).contacts[0].standing, 'active', 'they are contacts');

  chapter('Messages both ways');
  await bob.do('send', 'ann', 'Hello', 'Ann!');
  await phone.do('inbox');
  await phone.do('send', 'bob', 'Hello', 'Bob!');
  await bob.do('inbox');
  expect(await phone.texts(), ['Hello Ann!', 'Hello Bob!'], 'both read the same, in order');
  expect(await bob.texts(), ['Hello Ann!', 'Hello Bob!'], 'on both sides');

  chapter('Ann gets a laptop; her account key stays where it is');
  const [request, approval] = [join(folder, 'request.json'), join(folder, 'approval.json')];
  await laptop.do(
    ...['devices', 'request', '--account-key', ann.public_key, '--out', request, ...network],
  );
  await phone.do('devices', 'approve', request, '--out', approval);
  await laptop.do('devices', 'complete', approval, '--account-key', ann.public_key);
  await phone.do('sync');
  await laptop.do('sync');
  await phone.do('devices');
  expect((await phone.ask('devices')).devices.length, 2, 'her account has two devices');
  const known = (await laptop.ask('contacts')).contacts;
  expect(known, (await phone.ask('contacts')).contacts, 'the laptop knows her contacts');
  await bob.do('sync');

  chapter('The laptop is away while the others talk; Bob watches live');
  const follower = new Follower(bob);
  cleanUp.defer(() => follower.kill());
  await follower.sees('Bob is connected', ({ event }) => event === 'connected');
  await bob.do('send', 'ann', 'Are you still there?');
  await phone.do('inbox', '--limit', '1');
  await phone.do('send', 'bob', 'Of course.');
  await follower.sees('Of course.', ({ message }) => message?.text === 'Of course.');

  chapter('The relay is killed with SIGKILL');
  await relay.kill();
  await follower.sees('Bob lost the connection', ({ event }) => event === 'disconnected');
  const failed = await phone.type('send', 'bob', 'Sent into the void');
  expect(failed.exit, 4, 'Ann is told that no relay can be reached');
  expect((await phone.ask('status')).outbox, 1, 'her message waits in her outbox');

  chapter('The relay starts again, on the same folder');
  await relay.start();
  await follower.sees('Bob is connected again', ({ event }) => event === 'connected');
  await phone.do('sync');
  await follower.sees('Ann’s message', ({ message }) => message?.text === 'Sent into the void');
  expect((await phone.ask('status')).outbox, 0, 'her outbox is empty');
  expect(await follower.stop(), 0, 'Bob stops watching');

  chapter('The laptop comes back');
  const all = [
    'Hello Ann!',
    'Hello Bob!',
    'Are you still there?',
    'Of course.',
    'Sent into the void',
  ];
  await laptop.do('inbox');
  expect(await laptop.texts(), all.slice(2), 'it reads everything since it became a device');
  expect(await phone.texts(), all, 'the phone has everything, once');
  expect(await bob.texts(), all, 'and so has Bob');
  await laptop.do('send', 'bob', 'Hello from my laptop');
  expect((await bob.texts()).at(-1), 'Hello from my laptop', 'Bob hears the laptop');
  expect((await phone.texts()).at(-1), 'Hello from my laptop', 'and so does the phone');
}

const folder = mkdtempSync(join(tmpdir(), 'posthouse-demo-'));
const relay = new Relay(join(folder, 'relay'), await freePort());
const cleanUp = new DisposableStack();
const started = Date.now();
try {
  await play(folder, relay, cleanUp);
  say();
  say(bold(`All as it should be, in ${Math.round((Date.now() - started) / 1_000)} seconds.`));
} catch (error) {
  say();
  say(`NOT AS IT SHOULD BE: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  cleanUp[Symbol.dispose]();
  await relay.kill();
  rmSync(folder, { recursive: true, force: true });
}
