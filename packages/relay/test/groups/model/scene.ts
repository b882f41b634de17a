/** Takes each step at a relay and in the reference: both must give the same result. */
import type { GroupInvite } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import { Connections } from '../../fixtures/connections.ts';
import type { InProcessRelay } from '../../support/in-process-relay.ts';
import * as chain from './chain-acts.ts';
import type { Step } from './commands.ts';
import { type Hints, Refusal } from './ground.ts';
import { Observer } from './observer.ts';
import * as reads from './read-acts.ts';
import * as requests from './request-acts.ts';
import { type Act, type Speaker, Stage, type StepOf } from './stage.ts';

const jobs = [
  'accounts.expired-devices',
  'accounts.inactive-devices',
  'groups.expiry',
  'groups.retention',
] as const;

export class Scene {
  /** What became of each kind of step. */
  readonly tally = new Map<string, { accepted: number; refused: number }>();
  readonly #stage: Stage;
  readonly #observers = new Map<string, Observer>();
  #switchboard: Connections;

  private constructor(stage: Stage) {
    this.#stage = stage;
    this.#switchboard = new Connections(stage.relay);
  }

  /** A group of three, with an administrator: what most sequences need to get anywhere. */
  static async open(relay: InProcessRelay): Promise<Scene> {
    const scene = new Scene(await Stage.open(relay));
    for (const step of opening) await scene.take(step);
    return scene;
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'subscribe':
        return await this.#subscribe(step);
      case 'lists':
        return await this.#lists(step);
      case 'devices':
        await this.#stage.changeDevices(step);
        this.#groupNotices();
        return;
      case 'wait':
        return this.#stage.relay.clock.advance(step.seconds);
      case 'end':
        return this.#stage.waitForEnd(step);
      case 'job':
        return await this.#job(step);
      case 'restart':
        return await this.#restart();
      default: {
        const act = this.#actOf(step);
        if (act !== undefined) await this.#play(step, act);
      }
    }
  }

  #actOf(
    step: Exclude<
      Step,
      { kind: 'subscribe' | 'lists' | 'devices' | 'wait' | 'end' | 'job' | 'restart' }
    >,
  ): Act | undefined {
    const stage = this.#stage;
    switch (step.kind) {
      case 'update':
        return chain.update(stage, step);
      case 'role':
        return chain.role(stage, step);
      case 'transfer':
        return chain.transfer(stage, step);
      case 'close':
        return step.isMeant ? chain.close(stage, step) : undefined;
      case 'approve':
        return chain.approve(stage, step);
      case 'leave':
        return chain.leave(stage, step);
      case 'remove':
      case 'ban':
      case 'unban':
        return chain.accounts(stage, step);
      case 'recover':
        return chain.recover(stage, step);
      case 'prepare':
        return chain.prepare(stage, step);
      case 'commit':
        return chain.commit(stage, step);
      case 'invite':
        return requests.invite(stage, step);
      case 'resolve-invite':
        return requests.resolveInvite(stage, step);
      case 'revoke':
        return requests.revoke(stage, step);
      case 'apply':
        return requests.apply(stage, step);
      case 'reject-applications':
        return requests.rejectApplications(stage, step);
      case 'ask-recovery':
        return requests.askRecovery(stage, step);
      case 'reject-recoveries':
        return requests.rejectRecoveries(stage, step);
      case 'send':
        return reads.send(stage, step);
      case 'sync':
        return reads.sync(stage, step);
      case 'keys':
        return reads.keys(stage, step, (by) => this.#observer(by));
      case 'resolve':
        return reads.resolve(stage, step);
    }
  }

  /** Reads everything with every device in the end, from the beginning on. */
  async readEverything(): Promise<void> {
    await this.#restart();
    this.#observers.clear();
    const { people, model } = this.#stage;
    for (const by of people.keys()) {
      for (const device of [8, 9]) {
        await this.take({ kind: 'sync', by, device, after: -1, limit: 100 });
        for (let after = -1; after <= model.epoch; after += 2) {
          await this.take({ kind: 'keys', by, device, after, limit: 3 });
        }
        await this.take({ kind: 'resolve', by, device, which: undefined });
      }
    }
  }

  /** Makes a call of a valid device, which first ends stale access. */
  async #settle(by: Speaker): Promise<void> {
    const { groupId, model, relay } = this.#stage;
    if (!model.hasToEnd || !model.isValid(by.device)) return;
    const session = by.person.session(by.name);
    await relay.codeOf('group.resolve', { group_id: groupId }, { session });
    const heads = this.#groupNotices().map((notice) => 'head' in notice && notice.head);
    expect(heads).toEqual(model.endHere());
  }

  /** Takes a step at both; a refused step must leave no trace. */
  async #play(step: Step, { by, method, params, model }: Act): Promise<void> {
    const { relay } = this.#stage;
    await this.#settle(by);
    const said = outcomeOf(model);
    const before = said instanceof Refusal ? await relay.dump() : undefined;
    const session = by.person.session(by.name);
    let answer: unknown = null;
    let code = 'ok';
    try {
      answer = await relay.call(method, params, { session });
    } catch (error) {
      code = (error as { code?: string }).code ?? String(error);
      if (code === 'internal_error') throw error;
    }
    this.#count(step.kind, code);
    if (said instanceof Refusal) {
      expect(said.codes, method).toContain(code);
      expect(this.#groupNotices()).toEqual([]);
      expect(await relay.dump()).toEqual(before);
      return;
    }
    expect(code, method).toBe('ok');
    this.#expectNotices(said.hints ?? {});
    await said.check?.(answer as JsonObject);
    await this.#agree();
  }

  async #subscribe(step: StepOf<'subscribe'>): Promise<void> {
    const { relay, groupId, model } = this.#stage;
    const by = this.#stage.speaker(step);
    const said = outcomeOf(() => model.subscribe(by));
    const connection = await this.#switchboard.connect(by.person, by.name);
    const params = { group_ids: [groupId] };
    const code = await relay.codeOf('group.subscribe', params, { connection });
    this.#count(step.kind, code);
    expect(said instanceof Refusal ? said.codes : ['ok']).toContain(code);
    if (code === 'ok') await this.#agree();
  }

  /** Every list to its end, in small pages. */
  async #lists(step: StepOf<'lists'>): Promise<void> {
    const { model } = this.#stage;
    const by = this.#stage.speaker(step);
    await this.#list(step, by, {
      method: 'group.invite.list',
      model: () => model.visibleInvites(by),
      idsOf: ({ invites }) =>
        (invites as { invite: GroupInvite }[]).map((each) => each.invite.invite_id),
    });
    await this.#list(step, by, {
      method: 'group.application.list',
      model: () => model.visibleApplications(by),
      idsOf: ({ applications }) =>
        (applications as { application: { account: string } }[]).map(
          (each) => each.application.account,
        ),
    });
    await this.#list(step, by, {
      method: 'group.member.recovery.list',
      model: () => model.visibleRecoveries(by),
      idsOf: ({ requests: all }) =>
        (all as { request: { account: string } }[]).map((each) => each.request.account),
    });
  }

  async #list(
    step: StepOf<'lists'>,
    by: Speaker,
    list: {
      readonly method: string;
      readonly model: () => readonly string[];
      readonly idsOf: (answer: JsonObject) => readonly string[];
    },
  ): Promise<void> {
    const { method, model, idsOf } = list;
    const { limit } = step;
    const seen: string[] = [];
    let wanted: readonly string[] = [];
    let cursor: unknown;
    do {
      const params = {
        group_id: this.#stage.groupId,
        limit,
        ...(cursor !== undefined && { cursor }),
      };
      cursor = undefined;
      const check = (answer: JsonObject) => {
        const some = idsOf(answer);
        expect(some.length).toBeLessThanOrEqual(limit);
        if (answer.next !== undefined) expect(some.length).toBeGreaterThan(0);
        seen.push(...some);
        cursor = answer.next;
      };
      await this.#play(step, {
        ...{ by, method, params },
        model: () => {
          wanted = model();
          return { check };
        },
      });
    } while (cursor !== undefined);
    expect(seen.sort()).toEqual([...wanted].sort());
  }

  async #job({ which }: StepOf<'job'>): Promise<void> {
    const { model, relay } = this.#stage;
    const job = jobs[which] as (typeof jobs)[number];
    await relay.runJob(job);
    switch (job) {
      case 'accounts.expired-devices':
        model.noteExpired();
        break;
      case 'accounts.inactive-devices': {
        const heads = this.#groupNotices().map((notice) => 'head' in notice && notice.head);
        expect(heads).toEqual(model.endDevices());
        break;
      }
      case 'groups.expiry':
        this.#expectNotices(model.expire());
        break;
      case 'groups.retention':
        model.clean();
    }
    expect(this.#groupNotices()).toEqual([]);
    await this.#agree();
  }

  async #restart(): Promise<void> {
    await this.#stage.relay.restart();
    this.#switchboard = new Connections(this.#stage.relay);
  }

  /** Every device that may read reads what is new, rebuilds the state, and agrees. */
  async #agree(): Promise<void> {
    const { model, people } = this.#stage;
    for (const person of people) {
      const { account } = person;
      if (!model.members.has(account)) continue;
      for (const [name, { deviceId: device }] of person.devices) {
        await this.#settle({ account, device, person, name });
        const isOpen = model.hasOpenInterval(device) || model.status === 'closed';
        if (!isOpen || !model.isValid(device)) continue;
        await this.#observer({ account, device, person, name }).catchUp();
      }
    }
  }

  #observer({ device, person, name }: Speaker): Observer {
    const { relay, groupId, model } = this.#stage;
    const observer =
      this.#observers.get(device) ?? new Observer({ relay, groupId, model }, person, name);
    this.#observers.set(device, observer);
    return observer;
  }

  #groupNotices() {
    const { relay } = this.#stage;
    return relay.takeNotices().filter((notice) => 'group' in notice);
  }

  #expectNotices({ timeline, applications, recoveries, mayOmit }: Hints): void {
    const heard = this.#groupNotices();
    const expected: object[] = [];
    if (timeline) expected.push({ kind: 'group-timeline', head: this.#stage.model.sequence });
    const isOmitted =
      mayOmit === 'applications' && !heard.some(({ kind }) => kind === 'group-applications');
    if (applications !== undefined && !isOmitted) {
      expected.push({ kind: 'group-applications', accounts: [...applications].sort() });
    }
    if (recoveries !== undefined) {
      expected.push({ kind: 'group-recoveries', accounts: [...recoveries].sort() });
    }
    const shown = heard.map((notice) => ({
      kind: notice.kind,
      ...('head' in notice && { head: notice.head }),
      ...('accounts' in notice && { accounts: [...notice.accounts].sort() }),
    }));
    expect(shown).toEqual(expected);
  }

  #count(kind: string, code: string): void {
    const { accepted, refused } = this.tally.get(kind) ?? { accepted: 0, refused: 0 };
    const added = code === 'ok' ? { accepted: accepted + 1 } : { refused: refused + 1 };
    this.tally.set(kind, { accepted, refused, ...added });
  }
}

const sure = { device: 0, isStale: false } as const;
const opening: readonly Step[] = [
  {
    ...{ kind: 'invite', by: 'owner', device: 0, life: 5_000 },
    ...{ invitee: undefined, maxUses: undefined, again: undefined },
  },
  { kind: 'apply', by: 1, device: 0, which: 0, again: false },
  { kind: 'apply', by: 2, device: 0, which: 0, again: false },
  { kind: 'approve', by: 'owner', ...sure, targets: [1, 2], all: false, isWrong: false },
  { kind: 'role', by: 'owner', ...sure, target: 1, role: 'administrator' },
];

function outcomeOf<T>(model: () => T): Refusal | T {
  try {
    return model();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}
