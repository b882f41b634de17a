import {
  advanceGroup,
  type GroupAdvance,
  type GroupAnchor,
  type GroupProjection,
  type Network,
  type VerifiedGroupPage,
} from '@posthouse/protocol';
import { inTurns } from '../../sync/in-turns.ts';

/** Applies a verified page as `advanceGroup` does, a few events in each turn of the event loop. */
export async function advanceInTurns(
  network: Network,
  from: GroupProjection | GroupAnchor,
  page: VerifiedGroupPage,
): Promise<GroupAdvance> {
  const outcomes: GroupAdvance['outcomes'][number][] = [];
  let group = isProjection(from) ? from : undefined;
  for await (const events of inTurns(network, page.events)) {
    const before = group ?? from;
    const step = await network.computeAsync((each) =>
      advanceGroup(each, before, { ...page, events }),
    );
    group = step.group;
    outcomes.push(...step.outcomes);
    if (step.blocked !== undefined) return { group, outcomes, blocked: step.blocked };
  }
  return { group, outcomes };
}

function isProjection(from: GroupProjection | GroupAnchor): from is GroupProjection {
  return Object.hasOwn(from, 'members');
}
