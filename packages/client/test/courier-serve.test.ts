/** `courier serve --stdio`: JSON-RPC 2.0 for other programs, over one session. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, test } from 'vitest';
import { commandLine, commandOf } from '../src/courier/command-request.ts';
import { newCommand } from '../src/courier/command-signature.ts';
import { RequestLanes } from '../src/courier/request-lanes.ts';
import { contactsOfCourier, type Person } from './support/courier.ts';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients({ host: { groups: true } });
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

/** The command as a process, with what it has written. */
function serve(person: Person) {
  const main = join(import.meta.dirname, '../src/courier/main.ts');
  const child = spawn(process.execPath, [main, 'serve', '--stdio'], {
    env: { ...process.env, COURIER_HOME: person.folder },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  running.add(child);
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever is answered.
  const lines: any[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)));
  const write = (line: string) => child.stdin.write(`${line}\n`);
  return {
    child,
    write,
    request: (id: number, method: string, params?: object) =>
      write(JSON.stringify({ jsonrpc: '2.0', id, method, params })),
    answers: () => lines.filter((line) => !('method' in line)),
    answer: (id: number) => lines.find((line) => line.id === id),
    events: () => lines.filter(({ method }) => method === 'event').map(({ params }) => params),
    ended: once(child, 'exit'),
  };
}

test('commands of another program: in order in a conversation, with events, to the end of the input', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  const { account } = await ann.json('whoami');
  await ann.json('group', 'create', 'Chess');
  const served = serve(ann);
  served.request(1, 'whoami');
  served.request(2, 'contacts');
  const texts = Array.from({ length: 12 }, (_, index) => `-${index}`);
  for (const [index, text] of texts.entries()) {
    served.request(10 + index, 'send', index % 2 === 0 ? ['bob', text] : { to: 'bob', text });
  }
  served.request(30, 'group.send', { group: 'Chess', text: 'e4', markdown: true });
  served.request(31, 'group.read', { group: 'Chess', limit: 1 });
  await expect.poll(served.answers).toHaveLength(16);
  expect(served.answer(1).result).toMatchObject({ account });
  expect(served.answer(2).result).toMatchObject({ contacts: [{ alias: 'bob' }] });
  expect(served.answer(31).result.entries).toMatchObject([
    { text: 'e4', content_type: expect.stringContaining('markdown') },
  ]);
  const { messages } = await bob.json('inbox');
  expect(messages.map(({ text }: { text: string }) => text)).toEqual(texts);
  await bob.json('send', 'ann', 'hello');
  await expect
    .poll(served.events)
    .toContainEqual(
      expect.objectContaining({ message: expect.objectContaining({ text: 'hello' }) }),
    );
  served.request(40, 'send', { to: 'bob', text: 'last' });
  served.child.stdin.end();
  expect(await served.ended).toEqual([0, null]);
  expect(served.answer(40).result).toMatchObject({ text: 'last', status: 'target_accepted' });
});

test('what is no request, an unknown method, wrong parameters and failures have their codes', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  const served = serve(ann);
  const { account: stranger } = await bob.json('whoami');
  await ann.json('contacts', 'remove', 'bob');
  const cases: [line: string, id: number | null, code: number, text: string][] = [
    ['{"jsonrpc"', null, -32_700, 'JSON'],
    ['[]', null, -32_600, 'object'],
    ['{"jsonrpc":"2.0","id":{},"method":"sync"}', null, -32_600, 'id'],
    ['{"jsonrpc":"1.0","id":1,"method":"sync"}', 1, -32_600, '2.0'],
    ['{"jsonrpc":"2.0","id":2}', 2, -32_600, 'method'],
    ['{"jsonrpc":"2.0","id":3,"method":"sync","params":"x"}', 3, -32_600, 'params'],
    ['{"jsonrpc":"2.0","id":4,"method":"gallop"}', 4, -32_601, 'gallop'],
    ['{"jsonrpc":"2.0","id":5,"method":"key.export"}', 5, -32_601, 'key.export'],
    ['{"jsonrpc":"2.0","id":6,"method":"key"}', 6, -32_601, 'key'],
    ['{"jsonrpc":"2.0","id":7,"method":"send","params":{"text":"x"}}', 7, -32_602, 'text'],
    ['{"jsonrpc":"2.0","id":8,"method":"sync","params":{"data":"/"}}', 8, -32_602, 'data'],
    ['{"jsonrpc":"2.0","id":9,"method":"sync","params":{"__proto__":1}}', 9, -32_602, '__proto__'],
    ['{"jsonrpc":"2.0","id":10,"method":"send","params":["nemo"]}', 10, -32_602, 'nemo'],
    ['{"jsonrpc":"2.0","id":11,"method":"send","params":["me"]}', 11, -32_602, 'input'],
    ['{"jsonrpc":"2.0","id":12,"method":"accept"}', 12, -32_602, 'whom'],
    ['{"jsonrpc":"2.0","id":13,"method":"accept","params":[{}]}', 13, -32_602, 'string'],
  ];
  for (const [line] of cases) served.write(line);
  served.write('x'.repeat(1_048_577));
  served.write('{"jsonrpc":"2.0","method":"gallop"}');
  served.request(50, 'send', [stranger, 'hello']);
  served.child.stdin.end();
  expect(await served.ended).toEqual([0, null]);
  const answers = served.answers();
  expect(answers).toHaveLength(cases.length + 2);
  for (const [line, id, code, text] of cases) {
    const message = expect.stringContaining(text);
    expect(answers, line).toContainEqual(
      expect.objectContaining({ id, error: expect.objectContaining({ code, message }) }),
    );
  }
  expect(answers.filter(({ error }) => error?.code === -32_700)).toHaveLength(2);
  expect(served.answer(50).error).toMatchObject({
    code: -32_000,
    data: { code: 'not_a_contact', exit: 7 },
  });
}, 120_000);

describe('parameters by name', () => {
  const command = newCommand('edit <channel> <sequence> [text...]', 'edit')
    .option('--no-text')
    .option('--public')
    .option('--no-public')
    .option('--file <path>', 'file', (value, before: string[] = []) => [...before, value])
    .option('--limit <number>');
  const line = (params: object) =>
    commandLine({ command, words: ['edit'] }, { params: params as never }).slice(1);

  test.each<[object, string[]]>([
    [{ channel: 'a', sequence: 1, text: ['-x', 'y'] }, ['--json', '--', 'a', '1', '-x', 'y']],
    [{ channel: 'a', sequence: 1, text: false }, ['--no-text', '--json', '--', 'a', '1']],
    [{ public: true }, ['--public', '--json', '--']],
    [{ public: false }, ['--no-public', '--json', '--']],
    [{ file: ['-a', 'b'], limit: 0 }, ['--file=-a', '--file=b', '--limit=0', '--json', '--']],
  ])('%j is the command line %j', (params, expected) => {
    expect(line(params)).toEqual(expected);
  });

  test.each([
    { sequence: 1 },
    { json: true },
    { limit: true },
    { public: 'yes' },
    { channel: { deep: 1 } },
    { unknown: 1 },
  ])('%j is refused', (params) => {
    expect(() => line(params)).toThrow(expect.objectContaining({ code: -32_602 }));
  });

  test('a method without a verb is the first verb; help is none', () => {
    const root = newCommand('courier', '');
    root.addCommand(newCommand('contacts', '').addCommand(newCommand('list', '')));
    expect(commandOf(root, 'contacts').words).toEqual(['contacts', 'list']);
    for (const method of ['', 'help', 'contacts.', 'contacts.list.x', 'constructor']) {
      expect(() => commandOf(root, method), method).toThrow('no method');
    }
  });
});

test('lanes: one lane in order, eight at once, 64 accepted', async () => {
  const lanes = new RequestLanes();
  const [done, gates]: [number[], PromiseWithResolvers<void>[]] = [[], []];
  let most = 0;
  let now = 0;
  const add = (lane: string, number: number) => {
    const gate = Promise.withResolvers<void>();
    gates.push(gate);
    return lanes.add(lane, async () => {
      now += 1;
      most = Math.max(most, now);
      await gate.promise;
      now -= 1;
      done.push(number);
    });
  };
  for (let number = 0; number < 63; number += 1) await add(`lane ${number % 20}`, number);
  let isAccepted = false;
  const full = add('lane 0', 63).then(() => {
    isAccepted = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect({ isAccepted, now }).toEqual({ isAccepted: false, now: 8 });
  for (const gate of gates) gate.resolve();
  await full;
  await lanes.finish();
  expect({ most, done: done.length }).toEqual({ most: 8, done: 64 });
  for (let lane = 0; lane < 20; lane += 1) {
    const own = done.filter((number) => (number === 63 ? 0 : number % 20) === lane);
    expect(own).toEqual(own.toSorted((a, b) => a - b));
  }
});

test('a lane is chosen after the names were changed', async () => {
  const lanes = new RequestLanes();
  const [renaming, done] = [Promise.withResolvers<void>(), [] as string[]];
  await lanes.addAlone(async () => {
    await renaming.promise;
    done.push('renamed');
  });
  const chosen = lanes.untilShared().then(() => done.push('chosen'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(done).toEqual([]);
  renaming.resolve();
  await chosen;
  expect(done).toEqual(['renamed', 'chosen']);
});

test('a request that changes names runs after those before it, and before those after it', async () => {
  const lanes = new RequestLanes();
  const done: string[] = [];
  const first = Promise.withResolvers<void>();
  await lanes.add('a', async () => {
    await first.promise;
    done.push('before');
  });
  await lanes.addAlone(async () => {
    done.push('alone');
  });
  for (const lane of ['a', 'b']) {
    await lanes.add(lane, async () => {
      done.push(`after ${lane}`);
    });
  }
  first.resolve();
  await lanes.finish();
  expect(done).toEqual(['before', 'alone', 'after a', 'after b']);

  const [ann] = await contactsOfCourier(world);
  const served = ann.start(['serve', '--stdio']);
  const request = (id: number, method: string, ...params: string[]) =>
    served.input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  // Time for a request that does not wait.
  for (let id = -9; id <= 0; id += 1) request(id, 'sync');
  request(1, 'contacts.rename', 'bob', 'robert');
  request(2, 'send', 'bob', 'not to be sent');
  request(3, 'send', 'robert', 'hello');
  served.input.end();
  expect(await served.exit).toBe(0);
  const answers = served.objects().filter(({ id }) => id > 0);
  expect(answers.toSorted((a, b) => a.id - b.id)).toMatchObject([
    { result: { alias: 'robert' } },
    { error: { code: -32_602 } },
    { result: { text: 'hello', status: 'target_accepted' } },
  ]);
});
