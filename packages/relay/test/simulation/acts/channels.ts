/** What people do in channels. */
import type { Resident } from '../clients/resident.ts';
import type { World } from '../world.ts';

/** Channels of one simulation. */
const maxChannels = 2;

export async function actInChannels(world: World, by: Resident): Promise<void> {
  const { boards, chance, residents } = world;
  if (boards.length < maxChannels && (boards.length === 0 || chance.is(0.1))) {
    await world.createBoard(by);
    return;
  }
  if (boards.length === 0) return;
  const board = chance.pick(boards);
  const device = chance.pick([...by.devices]);
  if (board.owner !== by) {
    // Also without the right to: it must be refused.
    await (chance.is(0.8) ? board.post(by, device) : board.read());
    return;
  }
  const others = residents.filter((one) => one !== by);
  await chance.weighted<() => Promise<void>>([
    [5, () => board.post(by, device)],
    [3, () => board.revise(chance)],
    [2, () => board.update(chance, others)],
    [1, () => board.read()],
  ])();
}
