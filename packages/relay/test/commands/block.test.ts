/** `posthouse block` as an operator types it, with or without a running relay. */
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Relay } from '../../src/index.ts';
import { killAll, posthouse } from '../support/command.ts';
import { RelayData, rowsOf } from '../support/engine.ts';

let data: RelayData;
let relay: Relay;
beforeEach(async () => {
  data = await RelayData.withSchema();
  relay = await start();
});
afterEach(async () => {
  await relay[Symbol.asyncDispose]();
  killAll();
  await data[Symbol.asyncDispose]();
});

const start = () =>
  Relay.start(
    { ...data.config, dev: true, listen: '127.0.0.1:0' },
    { log: pino({ level: 'silent' }) },
  );

async function block(...args: string[]) {
  const { ended, output } = posthouse(['block', ...args, '--data', data.path], {
    ...data.environment,
    POSTHOUSE_LIMITS_BLOCKED_RELAYS: '3',
  });
  const code = await ended;
  return { code, output: output.text, errors: output.errors };
}

const id = (digit: string) => `0x${digit.repeat(40)}`;

/** Facts and message of a log line. */
const logged = (line: string) => {
  const { time: _, ...rest } = JSON.parse(line) as Record<string, unknown>;
  return rest;
};

async function listed(): Promise<Record<string, unknown>[]> {
  const { output } = await block('list', '--json');
  const lines = output.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('posthouse block', () => {
  test('07 §B4: blocks, lists and unblocks relays while a relay runs', async () => {
    expect(await block('list')).toEqual({ code: 0, output: '', errors: 'nothing is blocked\n' });
    const added = await block('add', 'relay', id('a'), '--reason', 'sends spam', '--log', 'warn');
    expect(added).toMatchObject({ code: 0, output: `relay ${id('a')} is blocked\n` });
    const line = { level: 40, by: 'command', msg: 'changed by the operator' };
    expect(logged(added.errors)).toEqual({
      ...{ ...line, verb: 'block add', subject: `relay ${id('a')}` },
    });
    await block('add', 'relay', id('b'));
    const blocked_at = expect.any(Number);
    expect(await listed()).toEqual([
      { kind: 'relay', relay_id: id('a'), reason: 'sends spam', blocked_at },
      { kind: 'relay', relay_id: id('b'), reason: '', blocked_at },
    ]);
    const { output } = await block('list');
    const lines = output.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^blocked +kind +id +reason$/);
    expect(lines[1]).toMatch(new RegExp(`^\\S+Z  relay  ${id('a')}  sends spam$`));
    expect(lines[2]).toMatch(new RegExp(`^\\S+Z  relay  ${id('b')}$`));

    const removed = await block('remove', 'relay', id('a'), '--log', 'warn');
    expect(removed).toMatchObject({ code: 0, output: `relay ${id('a')} is no longer blocked\n` });
    expect(logged(removed.errors)).toEqual({
      ...{ ...line, verb: 'block remove', subject: `relay ${id('a')}` },
    });
    expect(await block('remove', 'relay', id('a'))).toEqual({
      code: 1,
      output: '',
      errors: `relay ${id('a')} is not blocked: see posthouse block list\n`,
    });
    expect(await listed()).toMatchObject([{ relay_id: id('b') }]);
  });

  test('a relay that is blocked already keeps its time; a new reason replaces the old one', async () => {
    await block('add', 'relay', id('a'), '--reason', 'first');
    const [before] = await listed();
    const again = { code: 0, output: `relay ${id('a')} is blocked already\n` };
    expect(await block('add', 'relay', id('a'))).toMatchObject(again);
    expect(await listed()).toEqual([before]);
    expect(await block('add', 'relay', id('a'), '--reason', 'second')).toMatchObject(again);
    expect(await listed()).toEqual([{ ...before, reason: 'second' }]);
  });

  test('a relay cannot block itself, and the list has a limit', async () => {
    expect(await block('add', 'relay', relay.relayId)).toEqual({
      code: 1,
      output: '',
      errors: `${relay.relayId} is this relay itself: give the ID of another relay\n`,
    });
    for (const digit of ['a', 'b', 'c']) await block('add', 'relay', id(digit));
    expect(await block('add', 'relay', id('d'))).toEqual({
      code: 1,
      output: '',
      errors: '3 relays are blocked: remove one, or raise limits.blockedRelays\n',
    });
    expect(await rowsOf(relay.context.storage, 'blocks')).toHaveLength(3);
    // One that is blocked already needs no room.
    expect(await block('add', 'relay', id('c'), '--reason', 'x')).toMatchObject({ code: 0 });
  });

  test('02 §18: blocks accounts and addresses, for a time or for good', async () => {
    const ann = 'neo:860833102:NX8GreRFGFK5wpGMWetpX93HmtrezGogzk';
    const added = await block(
      'add',
      'account',
      ann,
      '--reason',
      'spam',
      '--until',
      '7d',
      '--log',
      'warn',
    );
    expect(added.output).toMatch(new RegExp(`^account ${ann} is blocked until \\S+Z\n$`));
    const until = Math.floor(Date.parse(/until (\S+)/.exec(added.output)?.[1] as string) / 1_000);
    expect(logged(added.errors)).toMatchObject({ verb: 'block add', subject: `account ${ann}` });
    expect(await block('add', 'address', '2001:db8:1:2::9')).toMatchObject({
      output: 'address 2001:db8:1:2::/64 is blocked\n',
    });
    const blocked_at = expect.any(Number);
    expect(await listed()).toEqual([
      { kind: 'account', account: ann, reason: 'spam', blocked_at, until },
      { kind: 'address', address: '2001:db8:1:2::/64', reason: '', blocked_at },
    ]);
    const { output } = await block('list');
    expect(output.split('\n')[0]).toMatch(/^blocked +kind +id +until +reason$/);
    expect(output.split('\n')[2]).toMatch(/^\S+Z +address +2001:db8:1:2::\/64 +-$/);
    expect(await block('add', 'address', '127.0.0.1')).toEqual({
      ...{ code: 1, output: '' },
      errors: expect.stringContaining('has addresses of this machine itself'),
    });
    expect(await block('add', 'address', '2001:db8::/18')).toEqual({
      ...{ code: 1, output: '' },
      errors: '--wide: 2001::/18 has very many addresses: give it if all are meant\n',
    });
    expect(await block('add', 'address', '2001::/18', '--wide')).toMatchObject({ code: 0 });
    expect(await block('remove', 'address', '2001::/18')).toMatchObject({ code: 0 });
    for (const [kind, id] of [
      ['account', ann],
      ['address', '2001:db8:1:2::77'],
    ] as const) {
      expect(await block('remove', kind, id)).toMatchObject({ code: 0 });
      expect(await block('remove', kind, id)).toMatchObject({ code: 1 });
    }
    expect(await listed()).toEqual([]);
  });

  test('works after the relay was stopped, and the list outlives it', async () => {
    await block('add', 'relay', id('a'));
    await relay[Symbol.asyncDispose]();
    expect(await block('add', 'relay', id('b'))).toMatchObject({ code: 0 });
    relay = await start();
    expect(await listed()).toMatchObject([{ relay_id: id('a') }, { relay_id: id('b') }]);
  });

  test('a reason commands no terminal and forges no line; one that is too long is refused', async () => {
    const evil = 'a\u001b[2J\u009bb\n2026-01-01T00:00:00Z  relay  forged';
    await block('add', 'relay', id('a'), '--reason', evil);
    const { output } = await block('list');
    expect(output.split('\n')).toHaveLength(3);
    expect(output).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(await listed()).toMatchObject([{ reason: evil }]);
    expect(await block('add', 'relay', id('b'), '--reason', 'ä'.repeat(1_025))).toEqual({
      code: 1,
      output: '',
      errors: '--reason: over 2048 bytes: give a shorter one\n',
    });
    expect(await block('add', 'relay', id('b'), '--reason', 'ä'.repeat(1_024))).toMatchObject({
      code: 0,
    });
  });

  test('wrong arguments end with 2 and change nothing', async () => {
    const wrong = [
      [],
      ['add'],
      ['add', 'relay'],
      ['add', 'relay', 'relay.example'],
      ['add', 'relay', id('a').toUpperCase()],
      ['add', 'account', id('a')],
      ['add', 'address', '192.0.2.0/33'],
      ['add', 'relay', id('a'), '--until', 'yesterday'],
      ['add', 'relay', id('a'), '--until', '2020-01-01'],
      ['add', 'relay', id('a'), '--until', '0d'],
      ['remove', 'relay', `${id('a')}a`],
      ['list', '--reason', 'x'],
      ['nonsense'],
    ];
    for (const args of wrong) {
      const { code, output, errors } = await block(...args);
      expect([args, code, output]).toEqual([args, 2, '']);
      expect(errors).toMatch(/^(?:error|Usage): /);
    }
    expect(await listed()).toEqual([]);
    expect((await block('add', '--help')).output).toContain('--reason <text>');
  });
});
