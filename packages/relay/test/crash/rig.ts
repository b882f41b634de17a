/**
 * A relay that is killed again and again while accounts write to every part of it over both
 * transports. What is right is decided from outside, by what was acknowledged, and in the end by rows.
 */
import { expect } from 'vitest';
import { GroupOutcomes } from '../fixtures/group-outcomes.ts';
import { type KillableCall, KillableRelay, type Outcomes } from '../fixtures/killable-relay.ts';
import { chanceOf } from '../support/chance.ts';
import { dump, engine, RelayData } from '../support/engine.ts';
import { AccountWriters } from './accounts.ts';
import { ChannelWriters, TimelineOutcomes } from './channels.ts';
import { GroupWriters } from './groups.ts';
import { MessageWriters } from './messages.ts';
import { type CrashPoint, chooseKills, type Kill, pointsOf } from './plan.ts';
import type { Writers } from './writers.ts';

/** Answers after which a process that did not come to its point is killed from outside. */
const enough = 500;

export interface CrashFigures {
  kills: number;
  /** Kills at points, by point: how many came to it. */
  readonly points: Map<CrashPoint, number>;
  /** Writes that were acknowledged, and answers that were lost. */
  acknowledged: number;
  lostAnswers: number;
  /** Writes whose answer was lost, and that had happened. */
  written: number;
}

export function noFigures(): CrashFigures {
  return { kills: 0, points: new Map(), acknowledged: 0, lostAnswers: 0, written: 0 };
}

const reading = /\.(sync|read|resolve|list|status|subscribe)$/;

/** Asks the part of a relay that a call was for. */
class EveryOutcome implements Outcomes {
  readonly groups: GroupOutcomes;
  readonly channels: TimelineOutcomes;
  acknowledged = 0;

  constructor(ground: KillableRelay) {
    this.groups = new GroupOutcomes(ground);
    this.channels = new TimelineOutcomes(ground);
  }

  accept(call: KillableCall): void {
    if (!reading.test(call.method)) this.acknowledged += 1;
    if (call.method.startsWith('group.')) this.groups.accept(call);
  }

  async wasWritten(call: KillableCall, code: string): Promise<boolean> {
    if (call.method.startsWith('group.')) return await this.groups.wasWritten(call, code);
    if (call.method.startsWith('channel.')) return await this.channels.wasWritten(call);
    return false;
  }
}

/**
 * Kills a relay on an empty database so many times; then checks that what was acknowledged is there
 * once and in order, that nothing is partial, and that no hint named what does not exist.
 *
 * @param seed of the kills and of the writers' choices
 * @param figures of this run are added to these
 */
export async function killRepeatedly(
  { kills, seed }: { readonly kills: number; readonly seed: number },
  figures: CrashFigures,
): Promise<void> {
  // Before the writers make choices of their own: a seed always gives the same kills.
  const chance = chanceOf(seed);
  const upTo = (most: number) => 1 + Math.floor(chance() * most);
  const moments = chooseKills(kills, pointsOf(engine), upTo);
  await using parts = new AsyncDisposableStack();
  const data = parts.use(await RelayData.empty());
  const ground = await KillableRelay.start(data);
  parts.defer(() => ground.stop());
  const outcomes = new EveryOutcome(ground);
  ground.outcomes = outcomes;
  const messages = parts.use(await MessageWriters.open(ground, { folder: data.path, chance }));
  const writers: readonly Writers[] = [
    await GroupWriters.open(ground, outcomes.groups),
    await ChannelWriters.open(ground, outcomes.channels),
    await AccountWriters.open(ground),
    messages,
  ];
  let isOver = false;
  const writing = Promise.all(writers.map((each) => each.write(() => isOver)));
  // Any failure ends the run at once.
  const failure = writing.then(() => new Promise<never>(() => {}));
  await ground.kill(0);
  for (const kill of moments) {
    await Promise.race([carryOut(ground, kill, figures), failure]);
    figures.kills += 1;
  }
  await Promise.race([ground.revive().then(() => ground.answersFromNow(50)), failure]);
  isOver = true;
  await writing;
  for (const each of writers) await each.check();
  await checkHints(ground, writers);
  figures.acknowledged += outcomes.acknowledged + messages.accepted;
  figures.lostAnswers += ground.lost.answers;
  figures.written += ground.lost.written;
  await messages[Symbol.asyncDispose]();
  await ground.stop();
  expect(ground.log).toEqual([]);
  await using storage = await data.open();
  const tables = await dump(storage);
  for (const each of writers) each.checkRows?.(tables);
}

/** Starts the relay and kills it. */
async function carryOut(ground: KillableRelay, kill: Kill, figures: CrashFigures): Promise<void> {
  if (kill.kind === 'starting') return await ground.killStarting(kill.milliseconds);
  if (kill.kind !== 'point') {
    await ground.revive();
    await ground.answersFromNow(kill.answers);
    return kill.kind === 'moment'
      ? await ground.kill(kill.turns)
      : await ground.killStopping(kill.turns);
  }
  const { plan } = kill;
  const isUp = await ground.revive(plan);
  const reached =
    !isUp ||
    (await Promise.race([
      ground.died().then(() => true),
      ground.answersFromNow(enough).then(() => false),
    ]));
  if (!reached) return await ground.kill(0);
  figures.points.set(plan.point, (figures.points.get(plan.point) ?? 0) + 1);
}

/** Heads that connections heard of never fall, and name what is there. */
async function checkHints(ground: KillableRelay, writers: readonly Writers[]): Promise<void> {
  const heads = new Map<string, number>();
  for (const each of writers) {
    for (const [id, head] of (await each.heads?.()) ?? []) heads.set(id, head);
  }
  const newest = new Map<string, number>();
  let count = 0;
  for (const { connection, params } of ground.hints) {
    const id = params.group_id ?? params.channel_id;
    if (params.head === undefined || typeof id !== 'string') continue;
    const head = params.head as number;
    const key = `${connection} ${id}`;
    expect(head, 'the head of a hint').toBeLessThanOrEqual(heads.get(id) ?? -1);
    expect(head, 'the head of a hint').toBeGreaterThanOrEqual(newest.get(key) ?? -1);
    newest.set(key, head);
    count += 1;
  }
  expect(count).toBeGreaterThan(0);
}
