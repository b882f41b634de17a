/** Divides the work on what peers send over turns of the event loop, in rotation of those who cause it. */
export interface WorkTurns {
  /**
   * Takes steps until one returns `false`: at once as long as there is time, and then in later turns.
   *
   * @param owner a Peer ID, or before the handshake an address
   */
  run(owner: string, step: () => boolean): void;
}

/** Takes all steps at once. */
export const undivided: WorkTurns = {
  run(_, step) {
    while (step());
  },
};

/** Does one piece of work when it is the owner's turn; rejects with what it throws. */
export function inTurn<T>(turns: WorkTurns, owner: string, work: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    turns.run(owner, () => {
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      }
      return false;
    });
  });
}
