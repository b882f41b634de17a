/** `posthouse invite` as an operator types it, next to a running relay. */
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Relay } from '../../src/index.ts';
import { killAll, posthouse } from '../support/command.ts';
import { RelayData, rowsOf } from '../support/engine.ts';

let data: RelayData;
let relay: Relay;
const logged: string[] = [];
beforeEach(async () => {
  data = await RelayData.withSchema();
  relay = await start();
});
afterEach(async () => {
  await relay[Symbol.asyncDispose]();
  killAll();
  await data[Symbol.asyncDispose]();
});

const start = () => {
  logged.length = 0;
  return Relay.start(
    { ...data.config, dev: true, listen: '127.0.0.1:0', registration: 'invite' },
    { log: pino({ level: 'warn' }, { write: (line) => logged.push(line) }) },
  );
};

async function invite(...args: string[]) {
  const { ended, output } = posthouse(['invite', ...args, '--data', data.path], {
    ...data.environment,
    POSTHOUSE_LIMITS_REGISTRATION_INVITES: '2',
  });
  const code = await ended;
  return { code, output: output.text, errors: output.errors };
}

describe('posthouse invite', () => {
  test('02 §9.4: creates, lists and revokes invites', async () => {
    expect(await invite('list')).toEqual({
      code: 0,
      output: '',
      errors: 'there are no invites: see posthouse invite create\n',
    });
    const created = await invite('create');
    expect(created).toMatchObject({ code: 0 });
    expect(created.output).toMatch(/^[0-9A-Z]{7}-[0-9A-Z]{7}-[0-9A-Z]{7}-[0-9A-Z]{5}\n$/);
    expect(created.errors).toMatch(/^invite [0-9a-z]{8}: one account, until \S+Z\n$/);
    const { output: json } = await invite(
      ...['create', '--uses', '30', '--days', '14', '--note', 'rowing club', '--json'],
    );
    const { id, code, created_at, ...facts } = JSON.parse(json) as Record<string, string>;
    expect(facts).toEqual({
      ...{ uses: 30, used: 0, note: 'rowing club' },
      expires_at: Number(created_at) + 14 * 86_400,
    });
    const listed = (await invite('list')).output.split('\n');
    expect(listed[0]).toMatch(/^id +created +used +until +note$/);
    expect(listed).toContainEqual(
      expect.stringMatching(new RegExp(`^${id} .* 0 of 30 .*Z +rowing club$`)),
    );
    expect(listed.join()).not.toContain(code);
    expect(await invite('create')).toEqual({
      code: 1,
      output: '',
      errors: '2 invites are stored: revoke some, or raise limits.registrationInvites\n',
    });
    expect(await invite('revoke', String(id))).toMatchObject({
      code: 0,
      output: `invite ${id} is revoked\n`,
    });
    expect(await invite('revoke', String(id))).toEqual({
      code: 1,
      output: '',
      errors: 'there is no such invite: see posthouse invite list\n',
    });
    expect(await rowsOf(relay.context.storage, 'registration_invites')).toHaveLength(1);
  });

  test('03 §4.3: at start one log line says how to let the first account in, until there is a way', async () => {
    const text = 'no account is here, and none can come: create an invite: posthouse invite create';
    expect(logged.map((line) => JSON.parse(line) as object)).toContainEqual(
      expect.objectContaining({ msg: text, registration: 'invite' }),
    );
    expect(await invite('create')).toMatchObject({ code: 0 });
    await relay[Symbol.asyncDispose]();
    relay = await start();
    expect(logged.join()).not.toContain(text);
  });

  test('wrong arguments end with 2 and change nothing', async () => {
    const wrong = [
      [],
      ['create', '--uses', '0'],
      ['create', '--uses', '1000001'],
      ['create', '--days', '3651'],
      ['create', '--days', 'x'],
      ['revoke'],
    ];
    for (const args of wrong) {
      const { code, output, errors } = await invite(...args);
      expect([args, code, output]).toEqual([args, 2, '']);
      expect(errors).toMatch(/^(?:error|Usage): /);
    }
    expect(await invite('create', '--note', 'ä'.repeat(129))).toEqual({
      code: 1,
      output: '',
      errors: '--note: over 256 bytes: give a shorter one\n',
    });
    expect(await rowsOf(relay.context.storage, 'registration_invites')).toEqual([]);
  });
});
