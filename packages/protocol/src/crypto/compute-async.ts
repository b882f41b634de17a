/** Runs synchronous rules with signatures and key agreements computed asynchronously. */
import { equalBytes } from '../encoding/bytes.ts';
import type { AsyncPrimitives, Primitives } from './primitives.ts';

/**
 * Runs work that verifies signatures or opens keys, with both computed by
 * {@link AsyncPrimitives} if there are any; else once, with the primitives as they are.
 *
 * The rules of the protocol are synchronous functions. So the work runs a first time to learn what
 * it computes: each signature counts as valid there, each key as unusable, and what comes of it is
 * dropped, also an error. After the computations it runs again with their results; what it asks for
 * only then is computed on the calling thread. So it must have no effect but its result.
 *
 * @throws what the second run throws
 * @example
 * const checks = deviceStateSignatures(network, state);
 * await computeAsync(primitives, (each) => verifySignatures(each, checks, 'device state'));
 */
export async function computeAsync<T>(
  primitives: Primitives,
  work: (primitives: Primitives) => T,
): Promise<T> {
  const { asynchronous } = primitives;
  if (asynchronous === undefined) return work(primitives);
  const questions = new Questions(primitives, asynchronous);
  try {
    work(questions.asking());
  } catch {
    // The second run throws it, if it is so.
  }
  return work(await questions.answered());
}

/** What a first run asks for, and the results for a second one. */
class Questions {
  readonly #primitives: Primitives;
  readonly #asynchronous: AsyncPrimitives;
  readonly #ed25519 = new Computations<boolean>();
  readonly #p256 = new Computations<boolean>();
  readonly #shared = new Computations<Uint8Array | undefined>();

  constructor(primitives: Primitives, asynchronous: AsyncPrimitives) {
    this.#primitives = primitives;
    this.#asynchronous = asynchronous;
  }

  /** The primitives of the first run: they begin the computations. */
  asking(): Primitives {
    const { ed25519, p256, x25519 } = this.#primitives;
    const asks = (scheme: 'ed25519' | 'p256', computations: Computations<boolean>) =>
      ((publicKey, message, signature) => {
        const check = { scheme, publicKey, message, signature };
        computations.begin([publicKey, message, signature], this.#asynchronous.verify(check));
        return true;
      }) satisfies Primitives['p256']['verify'];
    return {
      ...this.#primitives,
      ed25519: { ...ed25519, verify: asks('ed25519', this.#ed25519) },
      p256: { ...p256, verify: asks('p256', this.#p256) },
      x25519: {
        ...x25519,
        shared: (...keys) => {
          this.#shared.begin(keys, this.#asynchronous.shared(...keys));
          return undefined;
        },
      },
    };
  }

  /** The primitives of the second run. */
  async answered(): Promise<Primitives> {
    const { ed25519, p256, x25519 } = this.#primitives;
    const isEd25519 = await this.#ed25519.finish(ed25519.verify);
    const isP256 = await this.#p256.finish(p256.verify);
    const shared = await this.#shared.finish(x25519.shared);
    return {
      ...this.#primitives,
      ed25519: { ...ed25519, verify: isEd25519 },
      p256: { ...p256, verify: isP256 },
      x25519: { ...x25519, shared },
    };
  }
}

/** Computations of one function, by their input. */
class Computations<Result> {
  readonly #begun: Promise<{ readonly input: readonly Uint8Array[]; readonly result: Result }>[] =
    [];

  begin(input: readonly Uint8Array[], computation: Promise<Result>): void {
    this.#begun.push(computation.then((result) => ({ input, result })));
  }

  /** Returns the function with its results; what was not begun, it computes. */
  async finish<Input extends Uint8Array[]>(
    compute: (...input: Input) => Result,
  ): Promise<(...input: Input) => Result> {
    const results = await Promise.all(this.#begun);
    return (...input) => {
      // The first one that is left, if the second run asks in the order of the first.
      const index = results.findIndex((each) =>
        each.input.every((bytes, at) => equalBytes(bytes, input[at] as Uint8Array)),
      );
      const [found] = index === -1 ? [] : results.splice(index, 1);
      return found === undefined ? compute(...input) : found.result;
    };
  }
}
