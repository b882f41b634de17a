/**
 * The database of `posthouse reports`: one that a relay uses, before and after it is killed or
 * stopped, and ones that do not fit.
 */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { relayMigrations } from '../../src/modules.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { KillableRelay } from '../fixtures/killable-relay.ts';
import type { Person } from '../fixtures/person.ts';
import { killAll, posthouse } from '../support/command.ts';
import { dump, engine, RelayData } from '../support/engine.ts';
import { runReports } from './reports-command.ts';

/** Milliseconds for a test that runs many commands on a busy machine. */
const patience = 180_000;

describe('of a relay', () => {
  let data: RelayData;
  let ground: KillableRelay;
  let ann: Person;
  let ben: Person;
  let cem: Person;
  let channel: TestChannel;

  beforeAll(async () => {
    data = await RelayData.empty();
    ground = await KillableRelay.start(data);
    ann = await ground.register('ann');
    ben = await ground.register('ben');
    cem = await ground.register('cem');
  });
  afterAll(async () => {
    await ground.stop();
    killAll();
    await data[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    channel = await TestChannel.create(ground, ann);
  });

  /** The command with the configuration of the relay. */
  const reports = (...args: string[]) =>
    runReports([...args, '--config', join(data.path, 'config.json')]);
  const report = async (by: Person, target: number) => {
    const params = { channel_id: channel.channelId, target_sequence: target, reason: 'spam' };
    await ground.call('channel.post.report', params, { session: by.session() });
  };
  /** What the command prints, which must have succeeded. */
  const printed = async (...args: string[]) => {
    const { code, output, errors } = await reports(...args);
    expect([code, errors]).toEqual([0, '']);
    return output;
  };
  const listed = async () => {
    const lines = (await printed('--json')).split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  };

  test(
    'dismissing does not disturb a running relay or its process lock',
    async () => {
      const posts: number[] = [];
      for (let count = 0; count < 3; count += 1) posts.push(await channel.post());
      for (const post of posts) for (const person of [ben, cem]) await report(person, post);
      const commands = posts.map((post) => reports('dismiss', channel.channelId, String(post)));
      let isOver = false;
      const over = Promise.all(commands).finally(() => {
        isOver = true;
      });
      let written = 0;
      while (!isOver) {
        await channel.post();
        written += 1;
      }
      expect((await over).map(({ code, errors }) => [code, errors])).toEqual(
        posts.map(() => [0, '']),
      );
      expect(written).toBeGreaterThan(0);
      expect(await channel.post()).toBe(posts.length + written + 1);
      const second = posthouse(['serve', '--config', join(data.path, 'config.json')]);
      expect(await second.ended).toBe(1);
    },
    patience,
  );

  test(
    'a relay that is killed or stopped makes no difference, nor does starting it again',
    async () => {
      const posts = [await channel.post({ body: text('hello') }), await channel.post()];
      const [first, second] = posts as [number, number];
      for (const post of posts) await report(ben, post);
      const seen = async () => [
        await printed(),
        await printed('show', channel.channelId, String(first)),
      ];
      const running = await seen();
      await ground.killAfter({ answers: 0, turns: 0 });
      expect(await seen()).toEqual(running);
      expect(await printed('dismiss', channel.channelId, String(second))).toContain('1 report');
      await ground.revive();
      expect(await listed()).toMatchObject([{ sequence: first }]);
      await report(cem, second);
      await ground.stop();
      const stopped = await listed();
      expect(stopped).toHaveLength(2);
      expect(await printed('dismiss', channel.channelId, String(second))).toContain('1 report');
      await ground.revive();
      expect(await listed()).toMatchObject([{ sequence: first }]);
      expect(await channel.post()).toBe(second + 1);
    },
    patience,
  );
});

describe('without a relay that fits', () => {
  let data: RelayData;
  beforeEach(async () => {
    data = await RelayData.empty();
  });
  afterEach(async () => {
    killAll();
    await data[Symbol.asyncDispose]();
  });

  const refusal = async (...args: string[]) => {
    const { code, output, errors } = await runReports(
      ['--data', data.path, ...args],
      data.environment,
    );
    expect([code, output]).toEqual([1, '']);
    return errors;
  };
  const furnish = async (migrations = relayMigrations, sql: readonly string[] = []) => {
    await using storage = await data.open();
    await migrate(storage, migrations, 1_750_000_000);
    await storage.write('relay', async (tx) => {
      for (const statement of sql) await tx.run(statement);
    });
    return await dump(storage);
  };
  const state = async () => {
    await using storage = await data.open();
    return await dump(storage);
  };

  test('a database that no relay has used: that is said, and nothing is made', async () => {
    expect(await refusal()).toBe(
      engine === 'sqlite'
        ? `there is no relay.sqlite in ${data.path}: check the setting \`data\`\n`
        : 'no relay has used the database yet: start the relay on it once\n',
    );
    expect(await state()).toEqual({});
  });

  test('one of an older version is not migrated', async () => {
    const before = await furnish(relayMigrations.filter(({ id }) => id < 500));
    expect(await refusal()).toMatch(
      /^the database is older than this command: it lacks migration 501 \(channels\)\. Start /,
    );
    expect(await state()).toEqual(before);
  });

  test('one of a newer version is not touched', async () => {
    const later = { id: 9_999, name: 'later', statements: ['CREATE TABLE later (a BIGINT)'] };
    const before = await furnish([...relayMigrations, later]);
    expect(await refusal('dismiss', `chan_${'A'.repeat(22)}`, '1')).toBe(
      'the database is newer than this relay: it has migration 9999 (later). ' +
        'Run the version of the relay that made it, or a later one\n',
    );
    expect(await state()).toEqual(before);
  });

  test('one that a move has a hand on is not either', async () => {
    const mark = `INSERT INTO relay_move (slot, state, move_id, other)
      VALUES (1, 'moved', 'id', 'sqlite:/elsewhere')`;
    await furnish(relayMigrations, [mark]);
    expect(await refusal()).toContain('the database was moved to sqlite:/elsewhere');
  });

  test('one without reports, of a relay that hosts no channels', async () => {
    await furnish();
    const environment = { ...data.environment, POSTHOUSE_HOST_CHANNELS: 'false' };
    expect(await runReports(['--data', data.path], environment)).toEqual({
      ...{ code: 0, output: '', errors: 'no reports: host.channels is off\n' },
    });
  });

  if (engine === 'postgres') {
    test('a server that is not there is told of without the password', async () => {
      const url = 'postgres://relay:hunter2@127.0.0.1:1/relay';
      const environment = { ...data.environment, POSTHOUSE_STORAGE_URL: url };
      expect(await runReports(['--data', data.path], environment)).toEqual({
        code: 1,
        output: '',
        errors: 'cannot use PostgreSQL at 127.0.0.1:1/relay: connect ECONNREFUSED 127.0.0.1:1\n',
      });
    });
  }
});
