/** What `posthouse reports` prints while a relay runs, and which arguments it refuses. */
import { describe, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import type { Person } from '../fixtures/person.ts';
import { ChannelRelay, patience, runReports } from './channel-relay.ts';

describe('while a relay runs', () => {
  const relay = ChannelRelay.declare('Release notes');
  const ofChannel = () => ['--channel', relay.channel.channelId];

  test('a list for people, and one for programs; the newest last', async () => {
    const posts = [await relay.channel.post(), await relay.channel.post()] as [number, number];
    await relay.report(relay.ben, posts[1], 'second post');
    await relay.report(relay.cem, posts[0], 'x'.repeat(100));
    await relay.channel.delete(posts[1]);
    const lines = (await relay.printed(...ofChannel())).split('\n');
    expect(lines[0]).toMatch(/^reported +channel +post +is +by +reason$/);
    expect(lines).toHaveLength(4);
    const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
    const row = (post: string, person: Person, reason: string) =>
      expect.stringMatching(
        new RegExp(`^${time}  ${relay.channel.channelId}  ${post} +${person.account}  ${reason}$`),
      );
    expect(lines).toContainEqual(row(`${posts[1]} +deleted`, relay.ben, 'second post'));
    expect(lines).toContainEqual(row(`${posts[0]} +readable`, relay.cem, `${'x'.repeat(59)}…`));
    const facts = { channel_id: relay.channel.channelId, reported_at: expect.any(Number) };
    const all = await relay.listed(...ofChannel());
    expect(all).toHaveLength(2);
    expect(all).toContainEqual({
      ...facts,
      ...{ sequence: posts[0], post: 'readable', account: relay.cem.account },
      ...{ device_id: relay.cem.device().deviceId, reason: 'x'.repeat(100) },
    });
    expect(all).toContainEqual({
      ...facts,
      ...{ sequence: posts[1], post: 'deleted', account: relay.ben.account },
      ...{ device_id: relay.ben.device().deviceId, reason: 'second post' },
    });
    const times = all.map(({ reported_at }) => reported_at as number);
    expect(times).toEqual(times.toSorted());
  });

  test('--limit leaves older ones out and says so; no reports are said to be none', async () => {
    const empty = await relay.reports(...ofChannel());
    expect(empty).toEqual({ code: 0, output: '', errors: 'no reports\n' });
    const post = await relay.channel.post();
    for (const person of [relay.ann, relay.ben, relay.cem]) await relay.report(person, post);
    const all = await relay.listed(...ofChannel());
    const { code, output, errors } = await relay.reports(...ofChannel(), '--json', '--limit', '2');
    expect([code, errors]).toEqual([0, 'older reports are not shown: give a higher --limit\n']);
    expect(
      output
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    ).toEqual(all.slice(1));
    expect(await relay.listed(...ofChannel(), '--limit', '3')).toEqual(all);
  });

  test('show has the post as edits made it, and every reason in full', async () => {
    const post = await relay.channel.post({ body: text('before') });
    await relay.channel.edit(post, { body: text('one\ntwo') });
    await relay.report(relay.ben, post, 'long\nreason');
    const output = await relay.printed('show', relay.channel.channelId, String(post));
    expect(output).toMatch(
      new RegExp(
        [
          `^channel  ${relay.channel.channelId} Release notes`,
          `post     ${post}, readable`,
          `by       ${relay.ann.account}`,
          'at       \\S+Z',
          'text     text/plain',
          '    one',
          '    two',
          '',
          `reported \\S+Z by ${relay.ben.account} \\(${relay.ben.device().deviceId}\\)`,
          '    long',
          '    reason',
          '$',
        ].join('\n'),
      ),
    );
    const json = JSON.parse(
      await relay.printed('show', relay.channel.channelId, String(post), '--json'),
    );
    expect(json).toMatchObject({
      ...{ channel_id: relay.channel.channelId, channel_name: 'Release notes', sequence: post },
      ...{ post: 'readable', account: relay.ann.account, state: { body: text('one\ntwo') } },
      reports: [{ account: relay.ben.account, reason: 'long\nreason' }],
    });
  });

  test('show of a deleted post has its reports; of an unknown post it exits with 1', async () => {
    const post = await relay.channel.post({ body: text('secret') });
    await relay.report(relay.ben, post, 'bad');
    await relay.channel.delete(post);
    const output = await relay.printed('show', relay.channel.channelId, String(post));
    expect(output).toContain(`post     ${post}, deleted by the owner or a moderator\n`);
    expect(output).toContain('    bad\n');
    expect(output).not.toContain('secret');
    const nowhere = await relay.reports('show', `chan_${'A'.repeat(22)}`, '5');
    expect(nowhere).toEqual({
      code: 1,
      output: '',
      errors: `post 5 of chan_${'A'.repeat(22)}: no such post and no report about it: check channel and sequence\n`,
    });
    const unreported = await relay.channel.post();
    expect(await relay.printed('show', relay.channel.channelId, String(unreported))).toMatch(
      /\nno reports\n$/,
    );
  });

  test(
    "strangers' texts command no terminal, forge no line, and stay whole in JSON",
    async () => {
      const evil = 'a\u001b[2Jb\u0007\u009bc\u202ed\r\n2026-01-01T00:00:00Z  forged';
      relay.channel = await TestChannel.create(relay.ground, relay.ann, { name: evil });
      const post = await relay.channel.post({ body: text(evil) });
      await relay.report(relay.ben, post, evil);
      const dangerous = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/;
      const outputs = [
        await relay.printed(...ofChannel()),
        await relay.printed('show', relay.channel.channelId, String(post)),
        await relay.printed('--json', ...ofChannel()),
        await relay.printed('show', '--json', relay.channel.channelId, String(post)),
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
      const post = await relay.channel.post();
      const other = await relay.channel.post();
      for (const person of [relay.ann, relay.ben, relay.cem]) await relay.report(person, post);
      await relay.report(relay.ben, other);
      const about = [relay.channel.channelId, String(post)];
      expect(await relay.printed('dismiss', ...about, '--account', relay.ben.account)).toBe(
        '1 report dismissed\n',
      );
      const again = await relay.reports('dismiss', ...about, '--account', relay.ben.account);
      expect(again).toEqual({
        code: 1,
        output: '',
        errors: `post ${post} of ${relay.channel.channelId}: no reports by ${relay.ben.account} to dismiss\n`,
      });
      expect(await relay.printed('dismiss', ...about)).toBe('2 reports dismissed\n');
      expect(await relay.reports('dismiss', ...about)).toMatchObject({ code: 1, output: '' });
      expect(await relay.listed(...ofChannel())).toMatchObject([{ sequence: other }]);
      await relay.report(relay.ben, post);
      expect(await relay.listed(...ofChannel())).toHaveLength(2);
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
