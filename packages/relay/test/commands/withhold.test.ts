/** `posthouse reports withhold`, `restore` and `withheld`, as an operator types them. */
import { beforeEach, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { ChannelRelay, patience, runReports } from './channel-relay.ts';

const relay = ChannelRelay.declare('Market');
let about: readonly [string, string];
let post: number;

beforeEach(async () => {
  post = await relay.channel.post({ body: text('a bicycle') });
  await relay.channel.edit(post, { body: text('a stolen\nbicycle') });
  about = [relay.channel.channelId, String(post)];
});

const reports = async (args: readonly string[], input = '') =>
  await runReports([...args, '--log', 'warn', ...relay.config], {}, input);
/** Facts and message of a log line. */
const logged = (line: string) => {
  const { time, ...rest } = JSON.parse(line) as Record<string, unknown>;
  expect(time).toEqual(expect.any(Number));
  return rest;
};

test(
  'withhold and restore work while the relay runs, after it was killed, and while it is stopped',
  async () => {
    await relay.report(relay.ann, post, 'stolen');
    await relay.report(relay.ben, post, 'stolen');
    const change = { level: 40, msg: 'changed by the operator', by: 'command' };
    const subject = `post ${post} of ${relay.channel.channelId}`;
    const withheld = await reports(['withhold', ...about, '--yes']);
    expect(withheld).toMatchObject({
      code: 0,
      output: `post ${post} of ${relay.channel.channelId} is withheld, 2 reports dismissed\n`,
    });
    expect(logged(withheld.errors)).toEqual({ ...change, verb: 'report withhold', subject });
    expect(await relay.channel.sequences()).toEqual([0]);
    expect(await reports(['withhold', ...about, '--yes'])).toEqual({
      code: 0,
      output: `post ${post} of ${relay.channel.channelId} is withheld already, 0 reports dismissed\n`,
      errors: '',
    });
    await relay.ground.killAfter({ answers: 0, turns: 0 });
    const restored = await reports(['restore', ...about]);
    expect(restored).toMatchObject({
      code: 0,
      output: `post ${post} of ${relay.channel.channelId} is readable again\n`,
    });
    expect(logged(restored.errors)).toEqual({ ...change, verb: 'report restore', subject });
    await relay.ground.revive();
    expect(await relay.channel.sequences()).toEqual([0, 1, 2]);
    await relay.ground.stop();
    expect(await reports(['withhold', ...about, '--yes'])).toMatchObject({ code: 0 });
    await relay.ground.revive();
    expect(await relay.channel.sequences()).toEqual([0]);
    expect(await relay.channel.post()).toBe(3);
  },
  patience,
);

test(
  'without --yes it shows the post and asks; whatever is not yes leaves it there',
  async () => {
    for (const input of ['', '\n', 'no\n', 'yesterday\n']) {
      const { code, output, errors } = await reports(['withhold', ...about], input);
      expect([input, code, output]).toEqual([input, 1, '']);
      expect(errors).toContain(`post     ${post}, readable\n`);
      expect(errors).toContain('    a stolen\n    bicycle\n');
      expect(errors).toMatch(
        /withhold it\? \[y\/N\] [\s\S]*not withheld: answer y, or give --yes\n$/,
      );
    }
    expect(await relay.channel.sequences()).toEqual([0, 1, 2]);
    expect(await reports(['withhold', ...about], 'y\n')).toMatchObject({ code: 0 });
    expect(await relay.channel.sequences()).toEqual([0]);
  },
  patience,
);

test(
  'withheld lists them, and show says since when',
  async () => {
    const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
    await reports(['withhold', ...about, '--yes']);
    const isOwn = (line: string) => line.includes(relay.channel.channelId);
    const list = await reports(['withheld']);
    expect(list).toMatchObject({ code: 0, errors: '' });
    const [head, ...rows] = list.output.trimEnd().split('\n');
    expect(head).toMatch(/^withheld +channel +post +by +kept until$/);
    const row = `${time}  ${relay.channel.channelId}  ${post} +${relay.ann.account}  ${time}`;
    expect(rows.filter(isOwn)).toEqual([expect.stringMatching(new RegExp(`^${row}$`))]);
    const json = (await reports(['withheld', '--json'])).output.trimEnd().split('\n');
    expect(json.filter(isOwn).map((line) => JSON.parse(line))).toEqual([
      {
        ...{ channel_id: relay.channel.channelId, sequence: post, account: relay.ann.account },
        ...{ withheld_at: expect.any(Number), keep_until: expect.any(Number) },
      },
    ]);
    const shown = await reports(['show', ...about]);
    expect(shown.output).toMatch(new RegExp(`\npost      ${post}, withheld from its channel\n`));
    expect(shown.output).toMatch(new RegExp(`\nwithheld  ${time}\n`));
    expect(shown.output).toContain('    a stolen\n    bicycle\n');
    expect(JSON.parse((await reports(['show', ...about, '--json'])).output)).toMatchObject({
      ...{ post: 'withheld', withheld_at: expect.any(Number) },
      state: { body: text('a stolen\nbicycle') },
    });
  },
  patience,
);

test(
  'withheld --limit leaves older ones out, and says so',
  async () => {
    await reports(['withhold', ...about, '--yes']);
    const other = await TestChannel.create(relay.ground, relay.ann, { name: 'Fair' });
    await reports(['withhold', other.channelId, String(await other.post()), '--yes']);
    const { code, output, errors } = await reports(['withheld', '--limit', '1', '--json']);
    expect([code, errors]).toEqual([0, 'older posts are not shown: give a higher --limit\n']);
    expect(output.trimEnd().split('\n')).toHaveLength(1);
  },
  patience,
);

test(
  'what is not there, is deleted or not withheld ends with 1, wrong arguments with 2',
  async () => {
    const refusal = async (...args: string[]) => {
      const { code, output, errors } = await reports(args);
      expect([code, output]).toEqual([1, '']);
      return errors;
    };
    const name = (sequence: number) => `post ${sequence} of ${relay.channel.channelId}`;
    const [id] = about;
    expect(await refusal('withhold', id, '2', '--yes')).toBe(`${name(2)} does not exist\n`);
    expect(await refusal('withhold', id, '2')).toBe(`${name(2)} does not exist\n`);
    expect(await refusal('restore', ...about)).toBe(`${name(1)} is not withheld\n`);
    await relay.channel.delete(post);
    expect(await refusal('withhold', ...about, '--yes')).toBe(`${name(1)} was deleted\n`);
    for (const args of [
      ['withhold', 'x', '1'],
      ['restore', id],
      ['withheld', '--yes'],
    ]) {
      expect(await reports(args)).toMatchObject({ code: 2, output: '' });
    }
    expect(await relay.channel.sequences()).toEqual([0, 3]);
  },
  patience,
);
