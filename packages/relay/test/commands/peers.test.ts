/** `posthouse peers` as an operator types it, with or without a running relay. */
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Relay } from '../../src/index.ts';
import type { SqlValue, Storage } from '../../src/storage/types.ts';
import { killAll, posthouse } from '../support/command.ts';
import { RelayData, rowsOf } from '../support/engine.ts';

let data: RelayData;
let relay: Relay;
beforeEach(async () => {
  data = await RelayData.withSchema();
  relay = await Relay.start(
    { ...data.config, dev: true, listen: '127.0.0.1:0', federation: { listen: '' } },
    { log: pino({ level: 'silent' }) },
  );
});
afterEach(async () => {
  await relay[Symbol.asyncDispose]();
  killAll();
  await data[Symbol.asyncDispose]();
});

async function peers(...args: string[]) {
  const { ended, output } = posthouse(['peers', ...args, '--data', data.path], data.environment);
  const code = await ended;
  return { code, output: output.text, errors: output.errors };
}

async function listed(): Promise<Record<string, unknown>[]> {
  const { output } = await peers('--json');
  const lines = output.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const id = (digit: string) => `0x${digit.repeat(40)}`;
const at = 1_780_000_000;
const atText = '2026-05-28T20:26:40Z';

async function insert(storage: Storage, table: string, row: Record<string, SqlValue>) {
  const names = Object.keys(row);
  const marks = names.map(() => '?').join(', ');
  await storage.write('relays', (tx) =>
    tx.run(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`, ...Object.values(row)),
  );
}

/** Stores a relay as the registry names it. */
async function know(digit: string, more: Record<string, SqlValue> = {}): Promise<void> {
  await insert(relay.context.storage, 'relays', {
    relay_id: id(digit),
    endpoint: `https://${digit}.example/svc/v1`,
    status: 'active',
    updated_at: at * 1_000,
    seen_at: at,
    failures: 0,
    ...more,
  });
}

/** Stores a connection of a process with a relay, or, without one, that the process runs. */
async function connect(process: string, relay_id: string, seen_at: number, since = seen_at) {
  await insert(relay.context.storage, 'peer_connections', { process, relay_id, since, seen_at });
}

const failing = { failing_since: at, failures: 3, last_error: 'connect ECONNREFUSED' };

/** Queues messages for a destination, accepted at these times. */
async function queue(destination: string, ...acceptedAt: number[]): Promise<void> {
  const { storage } = relay.context;
  for (const [index, accepted_at] of acceptedAt.entries()) {
    const key = { sender: `neo:0:${destination}`, message_id: `msg_${index}` };
    await insert(storage, 'sent_results', {
      ...{ ...key, request: 'r', accepted_at, keep_until: 9_999_999_999, status: 'delivering' },
    });
    await insert(storage, 'deliveries', {
      ...{ ...key, recipient: 'neo:0:x', envelope_id: 'e', certificate_id: 'c' },
      ...{ recipient_boxes: '[]', deadline: 9_999_999_999, next_attempt_at: 9_999_999_999 },
      ...{ attempts: 1, destination },
    });
  }
}

const unknown = {
  ...{
    connected_processes: 0,
    since: null,
    peer_id: null,
    addresses: [],
    mail_waiting: 0,
    mail_more: false,
    mail_oldest: null,
  },
  ...{ last_ok: null, last_error: null, next_try: null, block_reason: null },
};

describe('posthouse peers', () => {
  test('without other relays says so, and does not list the relay itself', async () => {
    expect(await peers()).toEqual({ code: 0, output: '', errors: 'no other relay is known\n' });
    await insert(relay.context.storage, 'relays', {
      ...{ relay_id: relay.relayId, endpoint: 'https://own.example/svc/v1', status: 'active' },
      ...{ updated_at: 0, seen_at: at, failures: 0 },
    });
    expect(await peers()).toEqual({ code: 0, output: '', errors: 'no other relay is known\n' });
  });

  test('lists each relay with its state, for people and for programs', async () => {
    const addresses = ['/ip4/192.0.2.1/tcp/4201', '/dns4/a.example/tcp/4201'];
    const endpoints = ['https://a.example/svc/v1', ...addresses.map((one) => `${one}/p2p/12D3x`)];
    const descriptor = JSON.stringify({ endpoints });
    const reached = { last_ok: at, ok_since: at - 60 };
    // Another process could not reach it.
    await know('a', { peer_id: '12D3x', descriptor, ...reached, ...failing, retry_at: at });
    await know('b', { ...failing, retry_at: 9_000_000_000 });
    await know('c');
    await know('d', { status: 'suspended', ...failing, retry_at: 0 });
    await know('e', { last_ok: at });
    await insert(relay.context.storage, 'blocks', {
      ...{ kind: 'relay', id: id('e'), reason: 'spam', created_at: at },
    });
    const now = Math.floor(Date.now() / 1_000);
    // Two processes run, one of them has the connection; a third one ended long ago.
    await connect('one', '', now);
    await connect('one', id('a'), now, at - 60);
    await connect('two', '', now);
    await connect('ended', '', at);
    await connect('ended', id('c'), at);
    const facts = (digit: string, state: string) => ({
      ...unknown,
      ...{ relay_id: id(digit), name: `${digit}.example`, state },
      endpoint: `https://${digit}.example/svc/v1`,
    });
    const error = { last_error: 'connect ECONNREFUSED' };
    expect(await listed()).toEqual([
      {
        ...facts('a', 'connected'),
        ...{ since: at - 60, connected_processes: 1 },
        ...{ peer_id: '12D3x', addresses, last_ok: at, ...error },
      },
      { ...facts('b', 'failing'), since: at, next_try: 9_000_000_000, ...error },
      facts('c', 'disconnected'),
      { ...facts('d', 'suspended'), since: at, ...error },
      { ...facts('e', 'blocked'), since: at, last_ok: at, block_reason: 'spam' },
    ]);
    const { output, errors } = await peers();
    expect(errors).toBe('');
    expect(output.split('\n').map((line) => line.replaceAll(/ {2,}/g, '  '))).toEqual([
      'relay  name  state  since  mail  oldest  next try  addresses  last error',
      `${id('a')}  a.example  connected 1/2  2026-05-28T20:25:40Z  0  -  -  ${addresses.join(' ')}`,
      `${id('b')}  b.example  failing  ${atText}  0  -  2255-03-14T16:00:00Z  -  connect ECONNREFUSED`,
      `${id('c')}  c.example  disconnected  -  0  -  -  -`,
      `${id('d')}  d.example  suspended  ${atText}  0  -  -  -`,
      `${id('e')}  e.example  blocked  ${atText}  0  -  -  -`,
      '',
    ]);
  });

  test('counts the mail that waits for each relay, with its oldest message', async () => {
    await know('a', { ...failing, retry_at: at });
    await queue(id('a'), at + 60, at, at + 120);
    await queue(id('f'), at + 5);
    await queue('', at + 7, at + 9);
    expect(await listed()).toMatchObject([
      { relay_id: id('f'), state: 'unlisted', mail_waiting: 1, mail_oldest: at + 5 },
      { relay_id: id('a'), state: 'failing', mail_waiting: 3, mail_oldest: at },
    ]);
    const { output, errors } = await peers();
    expect(output).toMatch(
      new RegExp(`^${id('a')}  a\\.example  failing .* 3 +${atText}  now `, 'm'),
    );
    expect(errors).toBe(
      '2 messages wait for accounts whose relay is not known, the oldest since 2026-05-28T20:26:47Z\n',
    );
  });

  test('retry lets a failing relay be tried now, and no other', async () => {
    await know('a', { ...failing, retry_at: 9_000_000_000 });
    await know('b', { last_ok: at });
    const before = Math.floor(Date.now() / 1_000);
    expect(await peers('retry', id('a'), '--log', 'warn')).toEqual({
      code: 0,
      output: `relay ${id('a')} is tried again within a minute, if this relay runs\n`,
      // The one log line of a change.
      errors: expect.stringMatching(
        new RegExp(`^[^\\n]*"verb":"peer retry","subject":"${id('a')}"[^\\n]*\\n$`),
      ),
    });
    const [a] = (await listed()) as { next_try: number }[];
    expect(a?.next_try).toBeGreaterThanOrEqual(before);
    expect(a?.next_try).toBeLessThan(before + 600);
    expect(await rowsOf(relay.context.storage, 'relays')).toMatchObject([
      { relay_id: id('a'), ...failing },
      { relay_id: id('b'), retry_at: null },
    ]);
    expect(await peers('retry', id('b'))).toMatchObject({
      code: 0,
      output: `relay ${id('b')} does not fail: there is nothing to retry\n`,
    });
    expect(await peers('retry', id('c'))).toEqual({
      code: 1,
      output: '',
      errors: `relay ${id('c')} is not known: see posthouse peers\n`,
    });
    await insert(relay.context.storage, 'blocks', {
      ...{ kind: 'relay', id: id('a'), reason: '', created_at: at },
    });
    expect(await peers('retry', id('a'), '--log', 'warn')).toEqual({
      code: 1,
      output: '',
      errors: `relay ${id('a')} is blocked: end that with posthouse block remove\n`,
    });
  });

  test('a relay that is no longer blocked is tried at once: its block made it fail', async () => {
    await know('a', { ...failing, retry_at: 9_000_000_000 });
    await insert(relay.context.storage, 'blocks', {
      ...{ kind: 'relay', id: id('a'), reason: '', created_at: at },
    });
    const remove = ['block', 'remove', 'relay', id('a'), '--data', data.path];
    expect(await posthouse(remove, data.environment).ended).toBe(0);
    const [a] = (await listed()) as { next_try: number; state: string }[];
    expect(a?.state).toBe('failing');
    expect(a?.next_try).toBeLessThan(9_000_000_000);
  });

  test('works without a running relay', async () => {
    await know('a', { ...failing, retry_at: 9_000_000_000 });
    await relay[Symbol.asyncDispose]();
    expect(await listed()).toMatchObject([{ relay_id: id('a'), state: 'failing' }]);
    expect(await peers('retry', id('a'))).toMatchObject({ code: 0 });
  });

  test('texts of other relays command no terminal and forge no line', async () => {
    const evil = 'x\u001b[2J\u009b\r\n0xforged  y';
    const descriptor = JSON.stringify({ endpoints: [`/dns4/${evil}/tcp/1`] });
    await know('a', { ...failing, retry_at: at, descriptor, last_error: evil, endpoint: evil });
    const table = await peers();
    const json = await peers('--json');
    for (const { output } of [table, json]) {
      expect(output).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
      expect(output).not.toMatch(/^0xforged/m);
    }
    expect(table.output.split('\n')).toHaveLength(3);
    expect(JSON.parse(json.output)).toMatchObject({ last_error: evil, name: evil });
  });

  test('wrong arguments end with 2', async () => {
    for (const args of [['retry'], ['retry', 'a.example'], ['--limit', '1'], ['nonsense']]) {
      const { code, output, errors } = await peers(...args);
      expect([args, code, output]).toEqual([args, 2, '']);
      expect(errors).toMatch(/^error: /);
    }
  });
});
