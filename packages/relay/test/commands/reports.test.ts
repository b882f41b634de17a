/** What `posthouse reports` prints while a relay runs, and which arguments it refuses. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { KillableRelay } from '../fixtures/killable-relay.ts';
import type { Person } from '../fixtures/person.ts';
import { killAll } from '../support/command.ts';
import { RelayData } from '../support/engine.ts';
import { runReports } from './reports-command.ts';

/** Milliseconds for a test that runs many commands on a busy machine. */
const patience = 180_000;

describe('while a relay runs', () => {
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
    channel = await TestChannel.create(ground, ann, { name: 'Release notes' });
  });

  /** The command with the configuration of the relay. */
  const reports = (...args: string[]) =>
    runReports([...args, '--config', join(data.path, 'config.json')]);
  const report = async (by: Person, target: number, reason = 'spam') => {
    const params = { channel_id: channel.channelId, target_sequence: target, reason };
    await ground.call('channel.post.report', params, { session: by.session() });
  };
  const ofChannel = () => ['--channel', channel.channelId];
  /** What the command prints, which must have succeeded. */
  const printed = async (...args: string[]) => {
    const { code, output, errors } = await reports(...args);
    expect([code, errors]).toEqual([0, '']);
    return output;
  };
  const listed = async (...args: string[]) => {
    const lines = (await printed('--json', ...ofChannel(), ...args)).split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  };

  test('a list for people, and one for programs; the newest last', async () => {
    const posts = [await channel.post(), await channel.post()] as [number, number];
    await report(ben, posts[1], 'second post');
    await report(cem, posts[0], 'x'.repeat(100));
    await channel.delete(posts[1]);
    const lines = (await printed(...ofChannel())).split('\n');
    expect(lines[0]).toMatch(/^reported +channel +post +is +by +reason$/);
    expect(lines).toHaveLength(4);
    const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
    const row = (post: string, person: Person, reason: string) =>
      expect.stringMatching(
        new RegExp(`^${time}  ${channel.channelId}  ${post} +${person.account}  ${reason}$`),
      );
    expect(lines).toContainEqual(row(`${posts[1]} +deleted`, ben, 'second post'));
    expect(lines).toContainEqual(row(`${posts[0]} +readable`, cem, `${'x'.repeat(59)}…`));
    const facts = { channel_id: channel.channelId, reported_at: expect.any(Number) };
    const all = await listed();
    expect(all).toHaveLength(2);
    expect(all).toContainEqual({
      ...facts,
      ...{ sequence: posts[0], post: 'readable', account: cem.account },
      ...{ device_id: cem.device().deviceId, reason: 'x'.repeat(100) },
    });
    expect(all).toContainEqual({
      ...facts,
      ...{ sequence: posts[1], post: 'deleted', account: ben.account },
      ...{ device_id: ben.device().deviceId, reason: 'second post' },
    });
    const times = all.map(({ reported_at }) => reported_at as number);
    expect(times).toEqual(times.toSorted());
  });

  test('--limit leaves older ones out and says so; no reports are said to be none', async () => {
    const empty = await reports(...ofChannel());
    expect(empty).toEqual({ code: 0, output: '', errors: 'no reports\n' });
    const post = await channel.post();
    for (const person of [ann, ben, cem]) await report(person, post);
    const all = await listed();
    const { code, output, errors } = await reports(...ofChannel(), '--json', '--limit', '2');
    expect([code, errors]).toEqual([0, 'older reports are not shown: give a higher --limit\n']);
    expect(
      output
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    ).toEqual(all.slice(1));
    expect(await listed('--limit', '3')).toEqual(all);
  });

  test('show has the post as edits made it, and every reason in full', async () => {
    const post = await channel.post({ body: text('before') });
    await channel.edit(post, { body: text('one\ntwo') });
    await report(ben, post, 'long\nreason');
    const output = await printed('show', channel.channelId, String(post));
    expect(output).toMatch(
      new RegExp(
        [
          `^channel  ${channel.channelId} Release notes`,
          `post     ${post}, readable`,
          `by       ${ann.account}`,
          'at       \\S+Z',
          'text     text/plain',
          '    one',
          '    two',
          '',
          `reported \\S+Z by ${ben.account} \\(${ben.device().deviceId}\\)`,
          '    long',
          '    reason',
          '$',
        ].join('\n'),
      ),
    );
    const json = JSON.parse(await printed('show', channel.channelId, String(post), '--json'));
    expect(json).toMatchObject({
      ...{ channel_id: channel.channelId, channel_name: 'Release notes', sequence: post },
      ...{ post: 'readable', account: ann.account, state: { body: text('one\ntwo') } },
      reports: [{ account: ben.account, reason: 'long\nreason' }],
    });
  });

  test('show of a deleted post has its reports; of an unknown post it exits with 1', async () => {
    const post = await channel.post({ body: text('secret') });
    await report(ben, post, 'bad');
    await channel.delete(post);
    const output = await printed('show', channel.channelId, String(post));
    expect(output).toContain(`post     ${post}, deleted by the owner or a moderator\n`);
    expect(output).toContain('    bad\n');
    expect(output).not.toContain('secret');
    const nowhere = await reports('show', `chan_${'A'.repeat(22)}`, '5');
    expect(nowhere).toEqual({
      code: 1,
      output: '',
      errors: `post 5 of chan_${'A'.repeat(22)}: no such post and no report about it: check channel and sequence\n`,
    });
    const unreported = await channel.post();
    expect(await printed('show', channel.channelId, String(unreported))).toMatch(/\nno reports\n$/);
  });

  test(
    "strangers' texts command no terminal, forge no line, and stay whole in JSON",
    async () => {
      const evil = 'a\u001b[2Jb\u0007\u009bc\u202ed\r\n2026-01-01T00:00:00Z  forged';
      channel = await TestChannel.create(ground, ann, { name: evil });
      const post = await channel.post({ body: text(evil) });
      await report(ben, post, evil);
      const dangerous = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/;
      const outputs = [
        await printed(...ofChannel()),
        await printed('show', channel.channelId, String(post)),
        await printed('--json', ...ofChannel()),
        await printed('show', '--json', channel.channelId, String(post)),
      ];
      for (const output of outputs) {
        expect(output).not.toMatch(dangerous);
        expect(output).not.toMatch(/^2026-01-01/m);
      }
      expect(outputs[0]?.split('\n')).toHaveLength(3);
      expect(JSON.parse(outputs[2] as string)).toMatchObject({ reason: evil });
      expect(JSON.parse(outputs[3] as string)).toMatchObject({
        ...{ channel_name: evil, state: { body: text(evil) } },
      });
    },
    patience,
  );

  test(
    'dismiss removes the reports of one account or all; accounts can report again',
    async () => {
      const post = await channel.post();
      const other = await channel.post();
      for (const person of [ann, ben, cem]) await report(person, post);
      await report(ben, other);
      const about = [channel.channelId, String(post)];
      expect(await printed('dismiss', ...about, '--account', ben.account)).toBe(
        '1 report dismissed\n',
      );
      const again = await reports('dismiss', ...about, '--account', ben.account);
      expect(again).toEqual({
        code: 1,
        output: '',
        errors: `post ${post} of ${channel.channelId}: no reports by ${ben.account} to dismiss\n`,
      });
      expect(await printed('dismiss', ...about)).toBe('2 reports dismissed\n');
      expect(await reports('dismiss', ...about)).toMatchObject({ code: 1, output: '' });
      expect(await listed()).toMatchObject([{ sequence: other }]);
      await report(ben, post);
      expect(await listed()).toHaveLength(2);
    },
    patience,
  );
});

test(
  'wrong arguments, and a wrong configuration, end with 2',
  async () => {
    const some = `chan_${'A'.repeat(22)}`;
    const wrong = [
      ['show', 'chan_x', '1'],
      ['show', some, '0'],
      ['dismiss', some, '1', '--limit', '1'],
      ['--limit', '0'],
      ['nonsense'],
    ];
    const config = { POSTHOUSE_STORAGE_ENGINE: 'none' };
    const [help, configured, ...ended] = await Promise.all([
      runReports(['--help']),
      runReports([], config),
      ...wrong.map((args) => runReports(args)),
    ]);
    expect(ended.map(({ code, output }) => [code, output])).toEqual(wrong.map(() => [2, '']));
    for (const { errors } of ended) expect(errors).toMatch(/^error: /);
    expect(configured).toMatchObject({
      code: 2,
      errors: expect.stringMatching(/^the configuration is invalid:\nstorage.engine: /),
    });
    expect(help).toMatchObject({
      code: 0,
      output: expect.stringContaining('Exit status: 0 done'),
    });
  },
  patience,
);
