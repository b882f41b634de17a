/** `invite`: codes with which new accounts come to be at home here (02 §9.4). */
import { badRequest, ProtocolError, Type } from '@posthouse/protocol';
import {
  deleteInvite,
  insertInvite,
  listInvites,
  newInviteCode,
  registrations,
  type StoredInvite,
} from '../../registration/index.ts';
import { firstByTime, pageParams, readPage } from '../pages.ts';
import { defineVerb, type Verb } from '../verb.ts';

/** Accounts that one invite lets in, and days until it expires. */
export const mostUses = 1_000_000;
export const mostDays = 3_650;
const secondsOfDay = 86_400;

const create = defineVerb({
  noun: 'invite',
  name: 'create',
  description: 'Makes an invite and returns its code, which is not stored.',
  params: Type.Object({
    uses: Type.Optional(Type.Integer({ minimum: 1, maximum: mostUses })),
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: mostDays })),
    note: Type.Optional(Type.String()),
  }),
  changes: true,
  subject: (_, { id }) => String(id),
  run: async ({ storage, clock, random, config }, { uses = 1, days = 7, note = '' }) => {
    const { registrationInvites, registrationInviteNote } = config.limits;
    if (Buffer.byteLength(note) > registrationInviteNote) {
      throw badRequest('note', `over ${registrationInviteNote} bytes: give a shorter one`);
    }
    const { code, id, digest } = newInviteCode(random);
    const now = clock.now();
    const invite = {
      ...{ id, digest, uses, used: 0, note, createdAt: now },
      expiresAt: now + days * secondsOfDay,
    };
    const hasRoom = await storage.write(registrations, (tx) =>
      insertInvite(tx, invite, registrationInvites),
    );
    if (!hasRoom) {
      throw new ProtocolError(
        'state_conflict',
        `${registrationInvites} invites are stored: revoke some, or raise limits.registrationInvites`,
      );
    }
    return { code, ...wireOf(invite), registration: config.registration };
  },
});

const list = defineVerb({
  noun: 'invite',
  name: 'list',
  description: 'Lists the invites, the newest last.',
  params: Type.Object(pageParams),
  changes: false,
  run: ({ storage }, params) =>
    readPage({
      params,
      start: firstByTime,
      read: (after, limit) => storage.read((tx) => listInvites(tx, limit, after)),
      positionOf: ({ createdAt, id }) => [createdAt, id],
      wireOf,
    }),
});

const revoke = defineVerb({
  noun: 'invite',
  name: 'revoke',
  description: 'Ends an invite; accounts that it let in stay.',
  params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
  changes: true,
  subject: ({ id }) => id,
  run: async ({ storage }, { id }) => {
    const wasThere = await storage.write(registrations, (tx) => deleteInvite(tx, id));
    if (wasThere) return { id };
    throw new ProtocolError('not_found', 'there is no such invite: see posthouse invite list');
  },
});

function wireOf({ id, uses, used, note, createdAt, expiresAt }: StoredInvite) {
  return { id, uses, used, note, created_at: createdAt, expires_at: expiresAt };
}

export const inviteVerbs: readonly Verb[] = [create, list, revoke];
