/** A group with people in it, for one check. */
import type { JsonObject } from '@posthouse/protocol';
import { residents } from '../fixtures/test-accounts.ts';
import type { Resident, Stage } from '../fixtures/test-context.ts';
import { GroupActors } from './test-group.ts';

export interface SceneOptions {
  /** Number of ordinary members, 0 by default. */
  readonly members?: number;
  /** Number of administrators, 0 by default. */
  readonly administrators?: number;
  /** Number of people outside, 0 by default. */
  readonly strangers?: number;
  /** Devices of each, 1 by default. */
  readonly devices?: number;
  /** What the creation says otherwise. */
  readonly facts?: JsonObject;
}

/** Who is in a group and who is not; take them by destructuring. */
export interface Scene {
  readonly stage: Stage;
  readonly group: GroupActors;
  readonly owner: Resident;
  readonly administrators: readonly Resident[];
  readonly members: readonly Resident[];
  readonly strangers: readonly Resident[];
}

/**
 * Founds a group and admits people.
 * @example
 * const { group, owner, members } = await sceneOf(stage, { members: 1 });
 * const [ben] = members as [Resident];
 */
export async function sceneOf(stage: Stage, options: SceneOptions = {}): Promise<Scene> {
  const { administrators = 0, members = 0, strangers = 0, devices = 1, facts } = options;
  const inside = administrators + members;
  const [owner, ...people] = (await residents(stage, 1 + inside + strangers, { devices })) as [
    Resident,
    ...Resident[],
  ];
  const group = await GroupActors.found(stage, owner, facts);
  if (inside > 0) await group.admit(...people.slice(0, inside));
  for (const person of people.slice(0, administrators)) {
    await group.setRole(person, 'administrator');
  }
  return {
    stage,
    group,
    owner,
    administrators: people.slice(0, administrators),
    members: people.slice(administrators, inside),
    strangers: people.slice(inside),
  };
}
