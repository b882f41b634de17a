/**
 * Gives `Symbol.dispose` and `Symbol.asyncDispose` to engines that lack them (WebKit). Imported by each
 * module that uses them: classes name their methods with these symbols when they are defined, and a bundler
 * that splits the code keeps the order of a module and what it imports, but not that of an entry's imports.
 */
for (const name of ['dispose', 'asyncDispose']) {
  // Registered symbols: compilers of `using` fall back to the same ones.
  if (!(name in Symbol))
    Object.defineProperty(Symbol, name, { value: Symbol.for(`Symbol.${name}`) });
}
