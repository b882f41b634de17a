/**
 * `npm run demo`: runs a relay in a temporary folder and uses it with the command `courier`. Two
 * accounts, three devices, an invite, messages in both directions, a device that is offline, and a
 * relay that is killed and restarted. Keys, sockets and TLS are real; all files are removed at the
 * end. Exits with a status other than 0 if a step fails.
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
const print = (line = '') => process.stdout.write(`${line}\n`);

function heading(title: string): void {
  print();
  print(bold(title));
}

/** Prints `ok` if the value is the expected one; otherwise throws, which ends the demo. */
function expect(found: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(found, expected)) {
    throw new Error(
      `${what}\n  expected ${JSON.stringify(expected)}\n  found    ${JSON.stringify(found)}`,
    );
  }
  print(`  ok: ${what}`);
}

/** Time limit of a step, milliseconds. */
const stepTimeout = 60_000;

function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve(child.exitCode);
  }
  return new Promise((resolve) => child.once('exit', resolve));
}

/** Finds a free port, so that the relay can restart at the same address. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Runs `posthouse serve --dev` as a process of its own. */
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
      child.once('exit', (code) => reject(new Error(`the relay exited with ${code}`)));
      setTimeout(
        () => reject(new Error('the relay printed no ready line in time')),
        stepTimeout,
      ).unref();
    });
    print(`  relay: ${ready.split(' ').slice(0, 4).join(' ')}`);
  }

  /** Kills the relay as a power cut would: nothing is flushed. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    if (this.#child !== undefined) await exitOf(this.#child);
  }
}

interface CommandResult {
  readonly exit: number | null;
  readonly out: string;
  readonly error: string;
}

/** A device: runs `courier` with a folder of its own. */
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

  /** Runs a command and prints it with its output. */
  async runShown(...args: readonly string[]): Promise<CommandResult> {
    const result = await this.#run(args);
    const shown = args.map((arg) => (arg.length > 60 ? `${arg.slice(0, 24)}…` : arg)).join(' ');
    print(`  ${this.name}$ courier ${shown}`);
    for (const line of `${result.out}${result.error}`.split('\n')) {
      if (line !== '') print(`    ${line.length > 92 ? `${line.slice(0, 92)}…` : line}`);
    }
    return result;
  }

  /** Runs a command that must succeed. */
  async do(...args: readonly string[]): Promise<string> {
    const { exit, out, error } = await this.runShown(...args);
    if (exit !== 0) throw new Error(`courier ${args[0]} ended with ${exit}: ${error}`);
    return out.trim();
  }

  /** Runs a command with `--json` without printing it; for the checks. */
  // biome-ignore lint/suspicious/noExplicitAny: each command has its own JSON.
  async query(...args: readonly string[]): Promise<any> {
    const { exit, out, error } = await this.#run([...args, '--json']);
    if (exit !== 0) throw new Error(`courier ${args[0]} ended with ${exit}: ${error}`);
    return JSON.parse(out);
  }

  /** Reads the texts of its messages, in order of arrival. */
  async texts(): Promise<string[]> {
    const { messages } = await this.query('inbox');
    return messages.map((message: { text: string }) => message.text);
  }

  async #run(args: readonly string[]): Promise<CommandResult> {
    const child = this.start(...args);
    const timer = setTimeout(() => child.kill('SIGKILL'), stepTimeout);
    const [exit, out, error] = await Promise.all([
      exitOf(child),
      text(child.stdout as NodeJS.ReadableStream),
      text(child.stderr as NodeJS.ReadableStream),
    ]);
    clearTimeout(timer);
    return { exit, out, error };
  }
}

/** Runs `courier inbox --follow` and waits for its events. */
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

  /** Waits for an event that fits; drops it and the events before it. */
  async waitFor(
    what: string,
    fits: (event: { event: string; message?: { text: string } }) => boolean,
  ) {
    const deadline = AbortSignal.timeout(stepTimeout);
    for (;;) {
      const index = this.#events.findIndex(fits);
      if (index >= 0) {
        this.#events.splice(0, index + 1);
        print(`  ok: live: ${what}`);
        return;
      }
      if (this.#child.exitCode !== null) throw new Error(`courier exited before: ${what}`);
      if (deadline.aborted) throw new Error(`no such event in time: ${what}`);
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

async function runDemo(folder: string, relay: Relay, cleanUp: DisposableStack): Promise<void> {
  const network = [
    ...['--registry', join(relay.folder, 'registry.json')],
    ...['--ca', join(relay.folder, 'tls', 'ca.pem')],
  ];
  const device = (name: string) => new Device(name, join(folder, name));
  const [phone, laptop, bob] = [device('ann-phone'), device('ann-laptop'), device('bob')];

  heading('A relay starts in an empty folder');
  await relay.start();

  heading('Two people create accounts');
  await phone.do('setup', ...network);
  await bob.do('setup', ...network);
  const ann = await phone.query('whoami');
  const bobs = await bob.query('whoami');
  expect(ann.account !== bobs.account, true, 'two accounts, each with a key of its own');
  await phone.do('profile', '--nickname', 'Ann');

  heading('An invite connects them');
  const invite = await phone.do('invite');
  await bob.do('accept', invite, '--note', 'Bob, from the fair', '--as', 'ann');
  expect(
    (await bob.query('contacts')).contacts[0].standing,
    'awaiting',
    'Bob waits for her answer',
  );
  await phone.do('inbox');
  await phone.do('accept', bobs.account, '--as', 'bob');
  await bob.do('sync');
  expect((await bob.query('contacts')).contacts[0].standing, 'active', 'they are contacts');

  heading('Messages both ways');
  await bob.do('send', 'ann', 'Hello', 'Ann!');
  await phone.do('inbox');
  await phone.do('send', 'bob', 'Hello', 'Bob!');
  await bob.do('inbox');
  expect(await phone.texts(), ['Hello Ann!', 'Hello Bob!'], 'Ann has both messages in order');
  expect(await bob.texts(), ['Hello Ann!', 'Hello Bob!'], 'and so has Bob');

  heading('Ann adds a laptop; her account key stays on the phone');
  const [request, approval] = [join(folder, 'request.json'), join(folder, 'approval.json')];
  await laptop.do(
    ...['devices', 'request', '--account-key', ann.public_key, '--out', request, ...network],
  );
  await phone.do('devices', 'approve', request, '--out', approval);
  await laptop.do('devices', 'complete', approval, '--account-key', ann.public_key);
  await phone.do('sync');
  await laptop.do('sync');
  await phone.do('devices');
  expect((await phone.query('devices')).devices.length, 2, 'her account has two devices');
  const known = (await laptop.query('contacts')).contacts;
  expect(known, (await phone.query('contacts')).contacts, 'the laptop knows her contacts');
  await bob.do('sync');

  heading('The laptop is offline while the others write; Bob follows live');
  const follower = new Follower(bob);
  cleanUp.defer(() => follower.kill());
  await follower.waitFor('Bob is connected', ({ event }) => event === 'connected');
  await bob.do('send', 'ann', 'Are you still there?');
  await phone.do('inbox', '--limit', '1');
  await phone.do('send', 'bob', 'Of course.');
  await follower.waitFor('Of course.', ({ message }) => message?.text === 'Of course.');

  heading('The relay is killed with SIGKILL');
  await relay.kill();
  await follower.waitFor('Bob lost the connection', ({ event }) => event === 'disconnected');
  const failed = await phone.runShown('send', 'bob', 'Sent into the void');
  expect(failed.exit, 4, 'courier exits with 4: no relay can be reached');
  expect((await phone.query('status')).outbox, 1, 'her message waits in her outbox');

  heading('The relay starts again, on the same folder');
  await relay.start();
  await follower.waitFor('Bob is connected again', ({ event }) => event === 'connected');
  await phone.do('sync');
  await follower.waitFor('Ann’s message', ({ message }) => message?.text === 'Sent into the void');
  expect((await phone.query('status')).outbox, 0, 'her outbox is empty');
  expect(await follower.stop(), 0, 'Bob stops following');

  heading('The laptop comes back');
  const all = [
    'Hello Ann!',
    'Hello Bob!',
    'Are you still there?',
    'Of course.',
    'Sent into the void',
  ];
  await laptop.do('inbox');
  expect(await laptop.texts(), all.slice(2), 'it has all messages since it was added');
  expect(await phone.texts(), all, 'the phone has every message once');
  expect(await bob.texts(), all, 'and so has Bob');
  await laptop.do('send', 'bob', 'Hello from my laptop');
  expect(
    (await bob.texts()).at(-1),
    'Hello from my laptop',
    'Bob gets the message from the laptop',
  );
  expect((await phone.texts()).at(-1), 'Hello from my laptop', 'and so does the phone');
}

const folder = mkdtempSync(join(tmpdir(), 'posthouse-demo-'));
const relay = new Relay(join(folder, 'relay'), await freePort());
const cleanUp = new DisposableStack();
const started = Date.now();
try {
  await runDemo(folder, relay, cleanUp);
  print();
  print(bold(`All steps passed in ${Math.round((Date.now() - started) / 1_000)} seconds.`));
} catch (error) {
  print();
  print(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  cleanUp[Symbol.dispose]();
  await relay.kill();
  rmSync(folder, { recursive: true, force: true });
}
