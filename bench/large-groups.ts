/**
 * Builds large groups in little time. Admissions are real calls with 500 accounts each. Applications
 * and the events that fill the timeline are signed as usual and written with the relay's own store
 * functions, a thousand in a transaction, so that a client or the relay can verify all of them.
 */
import { managementHash } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { digest } from '../packages/relay/src/digest.ts';
import {
  insertEvent,
  insertMessage,
  insertSent,
  keepCertificate,
} from '../packages/relay/src/groups/chain/event-store.ts';
import { readGroup, updateGroup } from '../packages/relay/src/groups/chain/group-store.ts';
import { writeApplication } from '../packages/relay/src/groups/requests/application-store.ts';
import type { TestGroup } from '../packages/relay/test/fixtures/group.ts';
import { Person } from '../packages/relay/test/fixtures/person.ts';
import { network } from '../packages/relay/test/support/modules.ts';
import type { MeasuredRelay } from './measured-relay.ts';

const admittedAtOnce = 500;
const writtenAtOnce = 1_000;

/** Makes accounts with one device each that are registered at no relay: these members never call. */
export async function makeMembers(relay: MeasuredRelay, size: number): Promise<Person[]> {
  const members = Array.from({ length: size }, (_, index) => new Person(relay, `member ${index}`));
  for (const person of members) await person.addDevice('phone');
  return members;
}

/** Signs and stores one application for each account. */
export async function applyAll(relay: MeasuredRelay, group: TestGroup, people: readonly Person[]) {
  const invite = await group.invite();
  const now = relay.clock.now();
  const applications = people.map((person) => {
    const application = group.application(person, invite);
    const { certificate, deviceId } = person.device();
    return { application, text: canonicalJson(certificate), deviceId };
  });
  await relay.context.storage.write(`group:${group.groupId}`, async (tx) => {
    for (const { application, text: certificate, deviceId } of applications) {
      const signer = { deviceId, certificateId: digest(certificate), certificate };
      const text = canonicalJson(application as unknown as JsonObject);
      const neededUntil = invite.expires_at;
      await tx.run(...keepCertificate(group.groupId, { signer, neededUntil }));
      const stored = {
        ...signer,
        account: application.account,
        inviteId: invite.invite_id,
        memberKey: application.member_encryption_public_key,
        acceptedAt: now,
        text,
      };
      await writeApplication(tx, group.groupId, stored, undefined);
    }
  });
}

/** Stores applications and approves them, in batches. */
export async function admitAll(relay: MeasuredRelay, group: TestGroup, people: readonly Person[]) {
  for (let start = 0; start < people.length; start += admittedAtOnce) {
    const batch = people.slice(start, start + admittedAtOnce);
    await applyAll(relay, group, batch);
    await group.approve(batch);
  }
}

/** Fills a timeline up to a number of events: messages and changes of the name, in turn. */
export async function fillTimeline(
  relay: MeasuredRelay,
  group: TestGroup,
  events: number,
): Promise<void> {
  const { groupId, owner } = group;
  const { storage, limits } = relay.context;
  const { certificate, deviceId } = owner.device();
  const text = canonicalJson(certificate);
  const signer = { deviceId, certificateId: digest(text), certificate: text };
  const acceptedAt = relay.clock.now();
  const keepUntil = acceptedAt + limits.groupMessageRetention;
  for (let isMore = true; isMore; ) {
    isMore = await storage.write(`group:${groupId}`, async (tx) => {
      const row = await readGroup(tx, groupId);
      if (row === undefined) throw new Error('the group is gone');
      const { epoch } = row;
      const last = Math.min(row.sequence + writtenAtOnce, events - 1);
      let { name, chain_head } = row;
      for (let sequence = row.sequence + 1; sequence <= last; sequence += 1) {
        if (sequence % 2 === 0) {
          name = `club ${sequence}`;
          const body = group.link('group.update', { name, prev_hash: chain_head });
          chain_head = managementHash(network, body as never);
          const event = { sequence, epoch, acceptedAt, payload: canonicalJson(body as never) };
          await insertEvent(tx, groupId, { event, signer });
          continue;
        }
        const message = group.message(owner, epoch);
        const payload = canonicalJson(message as never);
        const event = { sequence, epoch, acceptedAt, payload };
        const key = { account: owner.account, messageId: message.message_id };
        await tx.run(...insertMessage(groupId, { event, signer, keepUntil }));
        await tx.run(
          ...insertSent(key, { groupId, sequence, envelope: digest(payload), keepUntil }),
        );
      }
      const next = { ...row, name, chain_head, sequence: Math.max(last, row.sequence) };
      // No limit of bytes is near: what was stored here need not be counted.
      await updateGroup(tx, next, 0);
      group.head = chain_head;
      return last < events - 1;
    });
  }
}
