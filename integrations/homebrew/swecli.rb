# Untested: written by Homebrew's documentation (https://docs.brew.sh/Python-for-Formula-Authors) without a machine to
# try it on. `brew update-python-resources swecli` fills in the resources and the checksum of a published release.
class Swecli < Formula
  include Language::Python::Virtualenv

  desc "Terminal coding agent whose context you can see, trust and take back"
  homepage "https://github.com/swecli/swecli"
  url "https://files.pythonhosted.org/packages/source/s/swecli/swecli-0.1.0.tar.gz"
  license "MIT"

  depends_on "rust" => :build # pydantic-core, tiktoken
  depends_on "python@3.13"

  def install
    virtualenv_install_with_resources
    man1.install "share/man/man1/swecli.1"
    bash_completion.install "share/bash-completion/completions/swecli"
    zsh_completion.install "share/zsh/site-functions/_swecli"
    fish_completion.install "share/fish/vendor_completions.d/swecli.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/swecli --version")
    assert_match "Answer:", shell_output("#{bin}/swecli demo --print")
  end
end
