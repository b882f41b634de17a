/** Which events of groups have happened, as people learn it who lose answers. */
import { managementHash } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { KillableCall, KillableGround, Outcomes } from '../support/killable.ts';
import { network } from '../support/world.ts';
import { readChain } from './member.ts';
import type { TestGroup } from './support.ts';

export class GroupOutcomes implements Outcomes {
  /** Chain bodies that are known to be accepted, by group, as management digests in order. */
  readonly accepted = new Map<string, string[]>();
  readonly #ground: KillableGround;
  readonly #groups = new Map<string, TestGroup>();

  constructor(ground: KillableGround) {
    this.#ground = ground;
  }

  /** Whose chain is read where an answer was lost. */
  know(group: TestGroup): void {
    this.#groups.set(group.groupId, group);
  }

  accept({ params }: KillableCall): void {
    const body = chainBodyOf(params);
    if (body === undefined) return;
    const id = body.group_id as string;
    const hash = managementHash(network, body as never);
    this.accepted.set(id, [...(this.accepted.get(id) ?? []), hash]);
  }

  async wasWritten({ method, params }: KillableCall, code: string): Promise<boolean> {
    if (method === 'group.invite.create') return code === 'state_conflict';
    const body = chainBodyOf(params);
    if (body === undefined) return false;
    const group = this.#groups.get(body.group_id as string);
    // A creation: nobody but its creator can have taken the ID.
    if (group === undefined) return code === 'state_conflict';
    const { state } = await readChain(this.#ground, group, group.owner);
    return state.head === managementHash(network, body as never);
  }
}

/** The body that becomes an event of the chain, of whatever call brings one. */
function chainBodyOf(params: JsonObject): JsonObject | undefined {
  const body = (params.approval ?? params.create ?? params) as JsonObject;
  const isLink = body.prev_hash !== undefined || params.create !== undefined;
  return isLink ? body : undefined;
}
