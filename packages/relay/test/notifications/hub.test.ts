import { beforeEach, describe, expect, test } from 'vitest';
import type { RelayContext } from '../../src/context.ts';
import { nextTurn } from '../../src/event-loop.ts';
import { FairScheduler } from '../../src/notifications/fair-scheduler.ts';
import { GroupListeners } from '../../src/notifications/group-listeners.ts';
import { Hub, type ListenersByKind } from '../../src/notifications/hub.ts';
import { MemoryBus } from '../../src/notifications/memory-bus.ts';
import type { TopicListeners } from '../../src/notifications/subscribers.ts';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { BoundSession } from '../../src/transport/bound-session.ts';
import { ManualClock } from '../support/clock.ts';

let clock: ManualClock;
let bus: MemoryBus;
let hub: Hub;
let failures: unknown[];

beforeEach(() => {
  clock = new ManualClock();
  failures = [];
  bus = new MemoryBus((error) => failures.push(error));
  hub = new Hub({ bus, clock }, noListeners);
});

/** Groups and channels are tested by themselves. */
const noListeners = {} as ListenersByKind;

/** A connection that writes down what is sent and says `sent` when the test lets it. */
class Peer {
  readonly texts: string[] = [];
  readonly #unsent: (() => void)[] = [];
  readonly #gathered: (() => void)[] = [];
  isGathering = false;
  readonly bound: BoundSession;

  constructor(session: Partial<DeviceSession> = {}) {
    const complete: DeviceSession = {
      id: 'first',
      mode: 'device',
      account: 'ann',
      deviceId: 'phone',
      expiresAt: clock.now() + 100,
      ...session,
    };
    this.bound = new BoundSession(complete, {
      hub,
      clock,
      send: (text, sent) => {
        this.texts.push(text);
        this.#unsent.push(sent);
      },
      beforeWrite: (work) => {
        if (this.isGathering) this.#gathered.push(work);
        else work();
      },
    });
    this.bound.enable();
  }

  /** The moment ends in which texts are gathered. */
  write(): void {
    for (const work of this.#gathered.splice(0)) work();
  }

  /** The network has taken everything handed to it. */
  drain(): void {
    for (const sent of this.#unsent.splice(0)) sent();
  }

  get heads(): number[] {
    return this.texts.map(
      (text) => JSON.parse(text).params.head ?? JSON.parse(text).params.revision,
    );
  }
}

const both = ['phone', 'laptop'];
const timeline = (head: number, deviceIds = both) =>
  bus.publish([{ kind: 'timeline', account: 'ann', head, deviceIds }]);
const state = (revision: number, deviceIds = both) =>
  bus.publish([{ kind: 'device-state', account: 'ann', revision, deviceIds }]);
const revoke = (...deviceIds: string[]) =>
  bus.publish([{ kind: 'revoked', account: 'ann', deviceIds }]);

describe('coalescing', () => {
  test('while one hint is being sent, only the highest later one waits', () => {
    const peer = new Peer();
    for (const head of [1, 5, 3, 4]) timeline(head);
    expect(peer.heads).toEqual([1]);
    peer.drain();
    expect(peer.heads).toEqual([1, 5]);
    peer.drain();
    expect(peer.heads).toEqual([1, 5]);
  });

  test('heads of one moment are one hint of the highest', () => {
    const peer = new Peer();
    peer.isGathering = true;
    for (const head of [1, 5, 3]) timeline(head);
    state(2);
    expect(peer.texts).toEqual([]);
    peer.write();
    expect(peer.heads).toEqual([5, 2]);
    peer.drain();
    peer.write();
    expect(peer.heads).toEqual([5, 2]);
  });

  test('a device that is revoked before the write gets no hint', () => {
    const peer = new Peer();
    peer.isGathering = true;
    timeline(1);
    revoke('phone');
    peer.write();
    expect(peer.texts).toEqual([]);
  });

  test('a million hints for a peer that reads nothing are one that waits', () => {
    const peer = new Peer();
    for (let head = 0; head < 1_000_000; head += 1) timeline(head);
    expect(peer.texts).toHaveLength(1);
    peer.drain();
    expect(peer.heads).toEqual([0, 999_999]);
  });

  test('kinds do not replace each other', () => {
    const peer = new Peer();
    timeline(9);
    timeline(10);
    state(2);
    peer.drain();
    expect(peer.heads).toEqual([9, 10, 2]);
  });
});

describe('what was told', () => {
  test('is not told again, nor what is older', () => {
    const peer = new Peer();
    for (const head of [4, 4, 3]) {
      timeline(head);
      peer.drain();
    }
    expect(peer.heads).toEqual([4]);
    timeline(5);
    expect(peer.heads).toEqual([4, 5]);
  });

  test('is remembered for each kind by itself', () => {
    const peer = new Peer();
    timeline(9);
    peer.drain();
    state(2);
    peer.drain();
    state(2);
    timeline(8);
    peer.drain();
    expect(peer.heads).toEqual([9, 2]);
  });

  test('is nothing that a connection was not sent', () => {
    const session: DeviceSession = {
      id: 'first',
      mode: 'device',
      account: 'ann',
      deviceId: 'phone',
      expiresAt: clock.now() + 100,
    };
    const sent: string[] = [];
    const bound = new BoundSession(session, {
      ...{ hub, clock },
      send: (text) => sent.push(text),
      beforeWrite: (work) => work(),
    });
    timeline(3);
    bound.enable();
    timeline(3);
    expect(sent).toHaveLength(1);
  });

  test('outlasts a renewal', () => {
    const peer = new Peer();
    timeline(3);
    peer.drain();
    peer.bound.renew({ ...peer.bound.session, id: 'second' });
    timeline(3);
    expect(peer.heads).toEqual([3]);
  });
});

describe('who hears what', () => {
  test('the devices a notice names, and no other of the account', () => {
    const phone = new Peer();
    const laptop = new Peer({ deviceId: 'laptop' });
    timeline(1, ['laptop']);
    state(1, ['laptop', 'watch']);
    laptop.drain();
    expect(phone.heads).toEqual([]);
    expect(laptop.heads).toEqual([1, 1]);
  });

  test('a gap notifies no connection', () => {
    const peer = new Peer();
    bus.publish([{ kind: 'gap' }]);
    expect(peer.texts).toEqual([]);
    expect(peer.bound.dead).toBe(false);
  });

  test('every connection of the account, and none of another', () => {
    const peers = [new Peer(), new Peer({ deviceId: 'laptop' }), new Peer({ account: 'bob' })];
    timeline(1);
    expect(peers.map((peer) => peer.heads)).toEqual([[1], [1], []]);
  });

  test('02 §12.3: nothing after the session expired, also what was waiting', () => {
    const peer = new Peer();
    timeline(1);
    timeline(2);
    clock.advance(100);
    timeline(3);
    peer.drain();
    expect(peer.heads).toEqual([1]);
  });

  test('nothing before it is enabled', () => {
    const peer = new Peer();
    const silent = new BoundSession(peer.bound.session, {
      hub,
      clock,
      send: () => peer.texts.push('too early'),
      beforeWrite: (work) => work(),
    });
    timeline(1);
    expect(peer.heads).toEqual([1]);
    silent.release();
  });

  test('02 §10.3: a revoked device hears nothing more, also of what was waiting', () => {
    const phone = new Peer();
    const laptop = new Peer({ deviceId: 'laptop' });
    timeline(1);
    timeline(2);
    revoke('phone');
    state(7);
    phone.drain();
    laptop.drain();
    expect(phone.heads).toEqual([1]);
    expect(laptop.heads).toEqual([1, 2, 7]);
    expect(phone.bound.dead).toBe(true);
    expect(laptop.bound.dead).toBe(false);
  });

  test('02 §10.2: a capped session ends earlier, never later', () => {
    const peer = new Peer();
    const laptop = new Peer({ deviceId: 'laptop' });
    const cap = (expiresAt: number) =>
      bus.publish([{ kind: 'capped', account: 'ann', deviceId: 'phone', expiresAt }]);
    const now = clock.now();
    cap(now + 50);
    cap(now + 70);
    clock.advance(49);
    timeline(1);
    peer.drain();
    clock.advance(1);
    timeline(2);
    expect(peer.heads).toEqual([1]);
    expect(peer.bound.dead).toBe(true);
    expect(laptop.bound.dead).toBe(false);
  });

  test('revocation reaches a session before it is enabled', () => {
    const session: DeviceSession = {
      id: 'first',
      mode: 'device',
      account: 'ann',
      deviceId: 'phone',
      expiresAt: clock.now() + 100,
    };
    const parts = { hub, clock, send: () => {}, beforeWrite: () => {} };
    const bound = new BoundSession(session, parts);
    revoke('phone');
    expect(bound.dead).toBe(true);
  });

  test('a connection that is gone is not sent to', () => {
    const peer = new Peer();
    peer.bound.release();
    timeline(1);
    expect(peer.texts).toEqual([]);
  });
});

describe('an account with many connections', () => {
  const crowd = () => Array.from({ length: 20 }, () => new Peer());
  const sent = (peers: readonly Peer[]) => peers.filter(({ heads }) => heads.length > 0).length;

  test('02 §12.3: they are notified in turns of the event loop, each once', async () => {
    const peers = crowd();
    timeline(1);
    for (let most = 4; most <= 20; most += 4) {
      expect(sent(peers)).toBe(most);
      await nextTurn();
    }
    expect(peers.every(({ heads }) => heads.join() === '1')).toBe(true);
  });

  test('02 §12.3: changes that come meanwhile are merged, and the last reaches all', async () => {
    const peers = crowd();
    for (const head of [1, 5, 3]) timeline(head);
    state(2);
    await turns(20);
    for (const peer of peers) peer.drain();
    for (const peer of peers) expect(peer.heads.filter((head) => head !== 1)).toEqual([5, 2]);
  });

  test('02 §10.3: of those that wait, a revoked device gets no hint', async () => {
    const peers = [...crowd(), new Peer({ deviceId: 'laptop' })];
    timeline(1);
    revoke('phone');
    await turns(20);
    expect(sent(peers)).toBe(4 + 1);
  });

  test('02 §10.3: all are revoked at once, and their subscriptions end in turns', async () => {
    const left: string[] = [];
    const group = {
      ...{ count: 0, countOf: () => 0, ids: () => [], join: () => {}, uncount: () => {} },
      expect: () => ({ [Symbol.dispose]: () => {} }),
      leave: (_listener, id) => void left.push(id),
    } satisfies TopicListeners as TopicListeners;
    hub = new Hub({ bus, clock }, { group, channel: group } as object as ListenersByKind);
    const peers = crowd();
    const request = { kind: 'group', ids: ['one'], limit: 1, perAccount: 99, total: 99 } as const;
    for (const { bound } of peers) {
      await bound.setSubscriptions(request, async () => new Map([['one', 1]]));
    }
    revoke('phone');
    expect(peers.every(({ bound }) => bound.dead)).toBe(true);
    await Promise.resolve();
    expect(left.length).toBeLessThanOrEqual(4);
    await turns(20);
    expect(left).toHaveLength(20);
  });

  test('02 §13.3: subscriptions of closed connections count for no limit, however many end', async () => {
    const { group, peers } = await subscribed({ peers: 20, groups: 10 });
    expect([group.count, group.countOf('ann')]).toEqual([200, 200]);
    for (const { bound } of peers) bound.release();
    expect([group.count, group.countOf('ann')]).toEqual([0, 0]);
    expect(group.ids()).not.toEqual([]);
    const again = new Peer();
    const request = { kind: 'group', ids: ['one'], limit: 1, perAccount: 1, total: 1 } as const;
    await again.bound.setSubscriptions(request, async () => new Map([['one', 1]]));
    await turns(20);
    expect([group.count, group.countOf('ann'), group.ids()]).toEqual([1, 1, ['one']]);
  });

  test('02 §10.3: subscriptions end within turns of their own, however many hints wait', async () => {
    const { group, peers } = await subscribed({ peers: 20, groups: 100 });
    for (const id of group.ids()) {
      bus.publish([{ kind: 'group-timeline', group: id, head: 2, accessEnded: 0 }]);
    }
    for (const { bound } of peers) bound.release();
    await turns(6);
    expect(group.ids()).toEqual([]);
  });
});

/** Opens connections that subscribe to the same groups. */
async function subscribed(counts: { readonly peers: number; readonly groups: number }) {
  const scheduler = new FairScheduler(clock);
  const sessions = { isCurrent: true };
  const group = new GroupListeners({ clock, sessions } as object as RelayContext, scheduler);
  hub = new Hub({ bus, clock }, { group, channel: group } as object as ListenersByKind, scheduler);
  const peers = Array.from({ length: counts.peers }, () => new Peer());
  const ids = Array.from({ length: counts.groups }, (_, index) => `group ${index}`);
  const request = { kind: 'group', ids, limit: 100, perAccount: 9_999, total: 9_999 } as const;
  for (const { bound } of peers) {
    await bound.setSubscriptions(request, async () => new Map(ids.map((id) => [id, 1])));
  }
  return { group, peers };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

test('a bus listener that throws is reported and does not affect the others', () => {
  const heard: string[] = [];
  bus.subscribe(() => {
    throw new Error('broken listener');
  });
  using _late = bus.subscribe((notice) => heard.push(notice.kind));
  revoke('phone');
  expect(heard).toEqual(['revoked']);
  expect(failures).toEqual([new Error('broken listener')]);
});
