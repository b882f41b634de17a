/**
 * The database of `posthouse reports`: one that a relay uses, before and after it is killed or
 * stopped, and ones that do not fit.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { relayMigrations } from '../../src/modules.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { text } from '../fixtures/channel.ts';
import { killAll, posthouse } from '../support/command.ts';
import { dump, engine, RelayData } from '../support/engine.ts';
import { ChannelRelay, patience, runReports } from './channel-relay.ts';

describe('of a relay', () => {
  const relay = ChannelRelay.declare('Release notes');

  test(
    'dismissing does not disturb a running relay or its process lock',
    async () => {
      const posts: number[] = [];
      for (let count = 0; count < 3; count += 1) posts.push(await relay.channel.post());
      for (const post of posts)
        for (const person of [relay.ben, relay.cem]) await relay.report(person, post);
      const commands = posts.map((post) =>
        relay.reports('dismiss', relay.channel.channelId, String(post)),
      );
      let isOver = false;
      const over = Promise.all(commands).finally(() => {
        isOver = true;
      });
      let written = 0;
      while (!isOver) {
        await relay.channel.post();
        written += 1;
      }
      expect((await over).map(({ code, errors }) => [code, errors])).toEqual(
        posts.map(() => [0, '']),
      );
      expect(written).toBeGreaterThan(0);
      expect(await relay.channel.post()).toBe(posts.length + written + 1);
      const second = posthouse(['serve', ...relay.config]);
      expect(await second.ended).toBe(1);
    },
    patience,
  );

  test(
    'a relay that is killed or stopped makes no difference, nor does starting it again',
    async () => {
      const posts = [await relay.channel.post({ body: text('hello') }), await relay.channel.post()];
      const [first, second] = posts as [number, number];
      for (const post of posts) await relay.report(relay.ben, post);
      const seen = async () => [
        await relay.printed(),
        await relay.printed('show', relay.channel.channelId, String(first)),
      ];
      const running = await seen();
      await relay.ground.killAfter({ answers: 0, turns: 0 });
      expect(await seen()).toEqual(running);
      expect(await relay.printed('dismiss', relay.channel.channelId, String(second))).toContain(
        '1 report',
      );
      await relay.ground.revive();
      expect(await relay.listed()).toMatchObject([{ sequence: first }]);
      await relay.report(relay.cem, second);
      await relay.ground.stop();
      const stopped = await relay.listed();
      expect(stopped).toHaveLength(2);
      expect(await relay.printed('dismiss', relay.channel.channelId, String(second))).toContain(
        '1 report',
      );
      await relay.ground.revive();
      expect(await relay.listed()).toMatchObject([{ sequence: first }]);
      expect(await relay.channel.post()).toBe(second + 1);
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
    const before = await furnish(relayMigrations.filter(({ id }) => id < 500 || id >= 600));
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
        errors:
          'cannot use PostgreSQL at 127.0.0.1:1/relay: connect ECONNREFUSED 127.0.0.1:1; ' +
          'start the server, or correct host and port in `storage.url`\n',
      });
    });
  }
});
