{
  # Untested: written by the documentation of nixpkgs without a machine to try it on. `nix run .` starts
  # swecli from this repository, `nix profile install .` installs it.
  description = "A terminal coding agent whose context you can see, trust and take back";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      version = builtins.head (
        builtins.match ".*\n__version__ = \"([^\"]+)\"\n.*" (builtins.readFile ./swecli/__init__.py)
      );
    in
    {
      packages = each (pkgs: {
        default = pkgs.python313Packages.buildPythonApplication {
          pname = "swecli";
          inherit version;
          pyproject = true;
          src = self;
          build-system = with pkgs.python313Packages; [
            hatchling
            hatch-fancy-pypi-readme
          ];
          dependencies = with pkgs.python313Packages; [
            agent-client-protocol
            httpcore
            httpx
            jsonschema
            keyring
            markdown-it-py
            mcp
            msgspec
            pathspec
            platformdirs
            psutil
            pydantic
            pygments
            pypdf
            regex
            rich
            sniffio
            textual
            tiktoken
            tomlkit
          ];
          # The package set's versions may lie outside ours; the import check below tells what does not fit.
          pythonRelaxDeps = true;
          pythonRemoveDeps = [ "httpx2" ]; # brought by the SDK of MCP where that needs it
          pythonImportsCheck = [
            "swecli"
            "swecli.app"
          ];
          makeWrapperArgs = pkgs.lib.optionals pkgs.stdenv.isLinux [
            "--suffix PATH : ${pkgs.lib.makeBinPath [ pkgs.bubblewrap ]}"
          ];
          meta = {
            homepage = "https://github.com/swecli/swecli";
            license = pkgs.lib.licenses.mit;
            mainProgram = "swecli";
          };
        };
      });
    };
}
