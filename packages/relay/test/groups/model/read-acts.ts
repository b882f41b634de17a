/** Steps that send and read. */
import { encodeBase64url, type GroupEvent, type GroupMessageEnvelope } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import type { Epoch } from './ground.ts';
import { type Observer, openPage } from './observer.ts';
import { type Act, limits, pick, type Speaker, type Stage, type StepOf } from './stage.ts';

export function send(stage: Stage, step: StepOf<'send'>): Act | undefined {
  const by = stage.speaker(step);
  const epoch = Math.max(0, stage.model.epoch - (step.isOld ? 1 : 0));
  const own = stage.messages.filter((each) => each.by.device === by.device);
  const old = step.again === undefined ? undefined : pick(own, step.again)?.message;
  const message = old ?? stage.group.message(by.person, epoch, by.name);
  const sent = old !== undefined && step.isChanged ? changed(stage, by, old) : message;
  if (sent !== old) stage.messages.push({ by, message: sent });
  const { message_id: id, created_at: createdAt } = sent;
  return {
    by,
    method: 'group.message.send',
    params: sent,
    model: () => {
      const message = { id, epoch: sent.epoch, createdAt };
      const { sequence, hints } = stage.model.send(by, message, sent);
      return { hints, check: (answer) => expect(answer).toEqual({ sequence }) };
    },
  };
}

export function sync(stage: Stage, step: StepOf<'sync'>): Act | undefined {
  const by = stage.speaker(step);
  const { after, limit } = step;
  return {
    by,
    method: 'group.sync',
    params: { group_id: stage.groupId, after, limit },
    model: () => {
      const expected = stage.model.sync(by, after).map(({ sequence, epoch }) => [sequence, epoch]);
      return {
        check: ({ events, has_more }) => {
          const given = (events as unknown as GroupEvent[]).map((each) => [
            each.sequence,
            each.epoch,
          ]);
          expect(given).toEqual(expected.slice(0, limit));
          expect(has_more).toBe(expected.length > limit);
        },
      };
    },
  };
}

export function resolve(stage: Stage, step: StepOf<'resolve'>): Act | undefined {
  const by = stage.speaker(step);
  const invite = step.which === undefined ? undefined : pick(stage.invites, step.which);
  const invite_id = invite?.invite_id;
  return {
    by,
    method: 'group.resolve',
    params: { group_id: stage.groupId, ...(invite_id !== undefined && { invite_id }) },
    model: () => {
      stage.model.look(by, invite_id);
      return { check: (answer) => expect(answer).toEqual(stateOf(stage)) };
    },
  };
}

export function keys(
  stage: Stage,
  step: StepOf<'keys'>,
  observerOf: (by: Speaker) => Observer,
): Act | undefined {
  const by = stage.speaker(step);
  const { after, limit } = step;
  const most = Math.min(limit, limits.groupKeyPage);
  const params = { group_id: stage.groupId, after, limit };
  return {
    by,
    method: 'group.key.sync',
    params,
    model: () => {
      const permitted = stage.model.syncKeys(by, after);
      return {
        check: async (answer) => {
          const observer = observerOf(by);
          await observer.catchUp();
          const page = openPage(observer, answer, params);
          const given = page.map(({ epoch }) => epoch);
          const isEnd = answer.has_more === false;
          expectEpochs(stage, permitted, { given, isEnd, most });
          for (const { epoch, clientSecret } of page) {
            const { commitment } = permitted.find((each) => each.epoch === epoch) as Epoch;
            const secret = stage.secrets.get(commitment) as Uint8Array;
            expect(encodeBase64url(clientSecret)).toBe(encodeBase64url(secret));
            stage.model.give(by, epoch);
          }
        },
      };
    },
  };
}

/** Retained epochs are served; a deleted epoch is deleted for every device (05 §11.3). */
function expectEpochs(
  stage: Stage,
  permitted: readonly Epoch[],
  page: { readonly given: readonly number[]; readonly isEnd: boolean; readonly most: number },
): void {
  const { given, isEnd, most } = page;
  const last = isEnd ? stage.model.epoch : (given.at(-1) ?? -1);
  for (const each of permitted.filter(({ epoch }) => epoch <= last)) {
    each.isGone ||= !given.includes(each.epoch);
    if (stage.model.mustKeep(each)) expect(each.isGone, `epoch ${each.epoch}`).toBe(false);
  }
  const there = permitted.filter(({ isGone }) => !isGone).map(({ epoch }) => epoch);
  expect(given).toEqual(there.slice(0, most));
  expect(there.length > given.length).toBe(!isEnd);
}

function changed(stage: Stage, by: Speaker, message: GroupMessageEnvelope): GroupMessageEnvelope {
  const { device_signature: _, ...old } = message;
  const body = { ...old, created_at: old.created_at + 1 };
  const signed = stage.group.sign(body as JsonObject, { by: by.person, device: by.name });
  return signed as unknown as GroupMessageEnvelope;
}

/** What `group.resolve` says. */
function stateOf({ groupId, model }: Stage): object {
  return {
    group_id: groupId,
    name: model.name,
    description: model.description,
    status: model.status,
    owner: model.owner,
    member_capacity: model.capacity,
    member_count: model.members.size,
    invite_policy: model.policy,
  };
}
