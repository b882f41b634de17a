/**
 * Largest step between two sequences of a timeline. Restoring a relay raises its sequences by 2^32;
 * a larger step would only use the numbers up, of which there are 2^53 (04 §18.1).
 */
export const maxSequenceStep = 2 ** 40;
