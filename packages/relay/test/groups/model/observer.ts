/** A device that follows a group with client functions only. */
import {
  advanceGroup,
  checkGroupKeyPage,
  encodeBase64url,
  extendKeyHistory,
  type GroupKeyHistory,
  type GroupProjection,
  openGroupKeys,
  verifyGroupSyncPage,
} from '@posthouse/protocol';
import { expect } from 'vitest';
import { privateKeyOf } from '../../fixtures/member-key.ts';
import type { Person } from '../../fixtures/person.ts';
import { type InProcessRelay, network } from '../../support/in-process-relay.ts';
import type { Reference } from './reference.ts';

export interface Place {
  readonly relay: InProcessRelay;
  readonly groupId: string;
  readonly model: Reference;
}

/** Small, so that a device reads several pages. */
const limit = 7;

export class Observer {
  readonly place: Place;
  readonly person: Person;
  readonly name: string;
  history: GroupKeyHistory = [];
  #state: GroupProjection | undefined;

  constructor(place: Place, person: Person, name: string) {
    this.place = place;
    this.person = person;
    this.name = name;
  }

  /** Reads to the end; checks that it reads what it may, and that the rebuilt state is correct. */
  async catchUp(): Promise<void> {
    const { relay, groupId: group_id, model } = this.place;
    const session = this.person.session(this.name);
    const { account } = this.person;
    const readable = model.readable(this.person.device(this.name).deviceId);
    for (let isMore = true; isMore; ) {
      const after = this.#state?.sequence ?? -1;
      const params = { group_id, after, limit };
      const answer = await relay.call('group.sync', params, { session });
      const page = verifyGroupSyncPage(network, answer, params);
      const expected = readable.filter(({ sequence }) => sequence > after);
      expect(page.events.map(({ sequence }) => sequence)).toEqual(
        expected.slice(0, limit).map(({ sequence }) => sequence),
      );
      const anchor = { group_id, relay_id: relay.relayId };
      const { group, outcomes, blocked } = advanceGroup(network, this.#state ?? anchor, page);
      expect(blocked).toBeUndefined();
      expect(outcomes.filter(({ kind }) => kind === 'rejected')).toEqual([]);
      this.#state = group;
      this.history = extendKeyHistory(this.history, account, outcomes);
      isMore = page.has_more;
      expect(isMore).toBe(expected.length > limit);
    }
    expect(shown(this.#state as GroupProjection)).toEqual(wanted(model));
  }
}

function shown(group: GroupProjection): object {
  const { members, bans, status, owner, name, description, head, epoch } = group;
  return {
    ...{ status, owner, name, description, head, epoch },
    capacity: group.member_capacity,
    policy: group.invite_policy,
    commitment: group.client_secret_commitment,
    bans: [...bans].sort(),
    members: [...members.values()]
      .map((member) => [
        member.account,
        member.role,
        member.member_encryption_public_key,
        member.since,
      ])
      .sort(),
  };
}

function wanted(model: Reference): object {
  const { members, bans, status, owner, name, description, head, epoch } = model;
  const { capacity, policy, commitment } = model;
  return {
    ...{ status, owner, name, description, head, epoch, capacity, policy, commitment },
    bans: [...bans].sort(),
    members: [...members]
      .map(([account, { role, key, since }]) => [account, role, key, since])
      .sort(),
  };
}

/** Application secrets that devices derived, by group and epoch: all must be the same. */
const derived = new Map<string, string>();

/** Opens a page of keys against the verified history; no entry may fail. */
export function openPage(
  { place, person, name, history }: Observer,
  answer: unknown,
  request: { readonly after: number; readonly limit: number },
): { readonly epoch: number; readonly clientSecret: Uint8Array }[] {
  checkGroupKeyPage(answer, request);
  const { groupId: group_id } = place;
  const { deviceId, encryptionKey } = person.device(name);
  const opened = openGroupKeys(network, answer, {
    ...{ group_id, account: person.account, deviceId, history },
    devicePrivateKey: encryptionKey,
    memberPrivateKey: privateKeyOf,
  });
  // A box stands where it must and nowhere else (05 §4.11).
  const owed = answer.keys.map(({ epoch }, index) => {
    const before = answer.keys[index - 1];
    return before === undefined || !isSamePeriod(history, before.epoch, epoch);
  });
  expect(answer.keys.map((entry) => entry.client_secret_box !== undefined)).toEqual(owed);
  return opened.map((result) => {
    if (result.status !== 'verified') throw new Error(`epoch ${result.epoch}: ${result.status}`);
    const { epoch, clientSecret, applicationSecret } = result;
    const key = `${group_id} ${epoch}`;
    const secret = encodeBase64url(applicationSecret);
    expect(derived.get(key) ?? secret).toBe(secret);
    derived.set(key, secret);
    return { epoch, clientSecret };
  });
}

function isSamePeriod(history: GroupKeyHistory, one: number, other: number): boolean {
  return history.some(({ epochs }) => epochs.includes(one) && epochs.includes(other));
}
